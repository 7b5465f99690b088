// The second tab: what is known of the model.

import { api, channel } from "./api.js";
import { button, drawn, find, h } from "./dom.js";
import { barsPicture, sharesTable, shortNumber } from "./pictures.js";
import { scorecardParts } from "./scorecard.js";
import { searchBox } from "./search.js";
import { change, current, onChange, state } from "./state.js";
import { bytes, number, texts } from "./texts.js";
import { goToLabel, showTree } from "./treemap.js";

const latest = channel();
const latestLabel = channel();
let drawnFor = "";

onChange((changed) => {
  if (state.tab === "model" && !changed.has("model") && (changed.has("node") || changed.has("tree")) && find("tree")) showTree(find("tree"), showLabel);
});

export async function showModel() {
  const model = current();
  const key = `${model.name}@${model.version}`;
  if (drawnFor === key) return;
  drawnFor = key;
  const place = find("panel-model");
  try {
    const about = await latest((signal) => api.about(model.name, signal));
    if (!about) return;
    place.replaceChildren(factsCard(about, model), scoreCard(about), treeCard(about), frequencyCard(about));
    if (about.n_trees) await showTree(find("tree"), showLabel);
  } catch (problem) {
    drawnFor = "";
    place.replaceChildren(h("p", { class: "card problem", role: "alert" }, problem.message));
  }
}

function factsCard(about, model) {
  const { facts } = about;
  const fact = (value, text) => value !== null && value !== undefined && h("div", { class: "fact" }, h("dd", {}, value), h("dt", {}, text));
  const depth = facts.trees?.[0] && (facts.trees[0].depth_min === facts.trees[0].depth_max ? `${facts.trees[0].depth_max}` : `${facts.trees[0].depth_min}–${facts.trees[0].depth_max}`);
  const said = [
    facts.calibrated ? texts.calibrated : texts.uncalibrated,
    facts.rule && texts.tuned(facts.rule),
    facts.neighbours && texts.withNeighbours,
    texts.versionOf(model.version),
  ].filter(Boolean);
  const card = Object.entries(facts.card);
  return h(
    "div",
    { class: "card" },
    h("h1", { class: "title" }, model.name),
    h(
      "dl",
      { class: "facts" },
      fact(shortNumber(facts.n_labels), texts.factLabels),
      fact(shortNumber(facts.n_examples), texts.factRows),
      fact(shortNumber(facts.n_features), texts.factFeatures),
      about.n_trees > 0 && fact(number(about.n_trees), texts.factTrees(about.n_trees)),
      fact(depth, texts.factDepth),
      about.file_bytes !== null && fact(bytes(about.file_bytes), texts.factSize),
    ),
    h("p", { class: "note" }, said.join(" ")),
    card.length > 0 && h("dl", { class: "card-facts" }, card.map(([key, value]) => h("div", {}, h("dt", {}, key), h("dd", {}, value)))),
  );
}

function scoreCard(about) {
  const title = h("h2", { class: "title" }, texts.measured);
  if (about.scorecard) return h("div", { class: "card", id: "scorecard" }, title, scorecardParts(about.scorecard, texts.measuredOnTest(about.scorecard.rows)));
  return h("div", { class: "card", id: "scorecard" }, title, h("p", {}, texts.notMeasured, " ", texts.notMeasuredText), h("pre", {}, texts.notMeasuredCommand));
}

function frequencyCard(about) {
  const first = about.labels_by_rows.findIndex((each) => each.n_labels);
  const bars = about.labels_by_rows
    .slice(Math.max(0, first))
    .map((each) => ({ name: texts.frequencyRows(each.least, each.most), value: each.n_labels, text: texts.frequencyLabels(each.n_labels) }));
  return h("div", { class: "card" }, h("h2", { class: "title" }, texts.frequencies), h("p", { class: "note" }, texts.frequenciesNote), drawn(h("div", { class: "picture" }), barsPicture(bars, texts.frequencies)));
}

function treeCard(about) {
  const title = h("h2", { class: "title" }, texts.tree);
  if (!about.n_trees) return h("div", { class: "card" }, title, h("p", {}, texts.treeNone));
  const choices = Array.from({ length: about.n_trees }, (_, tree) => button(texts.pathOf(tree + 1), (event) => {
    for (const each of event.target.parentNode.children) each.setAttribute("aria-pressed", String(each === event.target));
    change({ tree, node: 0 });
  }, { class: "quiet", "aria-pressed": String(state.tree === tree) }));
  return h(
    "div",
    { class: "card" },
    title,
    h("p", { class: "note" }, texts.treeNote),
    about.n_trees > 1 && h("div", { class: "row" }, choices),
    searchBox(texts.treeFind, "", goToLabel),
    h("div", { id: "label-card", "aria-live": "polite" }),
    h("div", { id: "tree" }),
  );
}

async function showLabel(name) {
  const answer = await latestLabel((signal) => api.label(state.model, name, signal));
  if (!answer) return;
  const { label } = answer;
  const near = label.nearest.map((each) => h("li", { class: "chip" }, each.label));
  find("label-card").replaceChildren(
    h(
      "div",
      { class: "inner-card" },
      h("div", { class: "row spread" }, h("h3", { class: "title" }, label.label), button(texts.close, () => find("label-card").replaceChildren(), { class: "quiet" })),
      h("p", { class: "note" }, label.reliability),
      h(
        "div",
        { class: "reason-columns" },
        label.words.length > 0 && h("section", {}, h("h4", { class: "small-title" }, texts.labelCard.words), sharesTable(label.words.slice(0, 8))),
        near.length > 0 && h("section", {}, h("h4", { class: "small-title" }, texts.labelCard.near), h("ul", { class: "chips" }, near)),
      ),
    ),
  );
}
