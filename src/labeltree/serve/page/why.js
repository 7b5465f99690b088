// Why a label is suggested, or is not: words, the way through the tree, similar training rows.

import { api, channel } from "./api.js";
import { decide, decisionOf } from "./corrections.js";
import { button, drawn, find, h } from "./dom.js";
import { mark } from "./editor.js";
import { nameOf, pathPicture, sharesTable } from "./pictures.js";
import { change, current, document_, state } from "./state.js";
import { shown } from "./suggestions.js";
import { percent, texts } from "./texts.js";

const latest = channel();
const TERMS = 10;
const ROWS = 5;
const LABELS = 6;
const SLOW = 300; // ms until it is said that reasons are looked for
let slow = 0; // the timer of the latest question
let tree = 0; // which of several is shown
let told = ""; // the label that is explained

export function hideWhy() {
  latest.end();
  clearTimeout(slow);
  told = "";
  find("why").hidden = true;
  find("why").replaceChildren();
}

export async function showWhy() {
  const label = state.label;
  const given = document_();
  if (!label || !state.text.trim() || given.wrong) {
    hideWhy();
    mark([]);
    return;
  }
  const isShown = shown.some((found) => found.label === label);
  clearTimeout(slow);
  slow = setTimeout(showLooking, SLOW, label, isShown ? texts.why : texts.whyNot);
  try {
    const answer = await latest((signal) =>
      isShown
        ? api.explain(state.model, { ...given, labels: [label] }, signal)
        : api.whyNot(state.model, { ...given, label, rule: state.rule }, signal),
    );
    if (!answer) return;
    clearTimeout(slow);
    const whyNot = answer.why_not;
    draw(whyNot ? whyNot.explanation : answer.explanation.labels[0], whyNot);
  } catch (problem) {
    clearTimeout(slow);
    mark([]);
    find("why").hidden = false;
    find("why").replaceChildren(heading(label, texts.why), h("p", { class: "problem" }, problem.status ? problem.message : texts.offline));
  }
}

function showLooking(label, question) {
  find("why").hidden = false;
  find("why").replaceChildren(heading(label, question), h("p", { class: "note", role: "status" }, texts.looking), h("progress", { "aria-label": texts.looking }));
}

function heading(label, question, probability) {
  return h(
    "div",
    { class: "row spread" },
    h("h2", { class: "title", id: "why-title" }, `${question} `, h("em", {}, label), probability !== undefined ? h("span", { class: "percent" }, ` ${percent(probability)}`) : "?"),
    button(texts.close, () => change({ label: "" }), { class: "quiet" }),
  );
}

function draw(explained, whyNot) {
  mark(explained.words);
  const place = find("why");
  const isNew = told !== explained.label;
  told = explained.label;
  place.hidden = false;
  const isAccepted = decisionOf(explained.label) === "accepted";
  const canAdd = current()?.input === "text" && whyNot;
  const say = (text, node) => node && [h("h3", { class: "small-title" }, text), node];
  place.replaceChildren(
    heading(explained.label, whyNot ? texts.whyNot : texts.why, explained.probability),
    h(
      "p",
      { class: "note" },
      texts.chance(percent(explained.probability), percent(explained.at_empty)),
      canAdd && button(isAccepted ? texts.added : texts.add, (event) => { decide(explained.label, "accepted"); event.target.textContent = texts.added; }, { class: "quiet", disabled: isAccepted }),
    ),
    ...(whyNot ? lost(whyNot) : []),
    h("div", { class: "reason-columns" },
      h("section", {}, say(texts.wordsFor, wordsOf(explained))),
      h("section", {}, say(texts.path, pathsOf(explained, whyNot?.lost_at)), neighboursOf(explained), forestOf(explained), joinedOf(explained))),
  );
  if (isNew && matchMedia("(max-width: 59.9rem)").matches) place.scrollIntoView(); // where it is below all else
}

function wordsOf(explained) {
  const terms = explained.terms.slice(0, TERMS);
  const rest = explained.terms.slice(TERMS);
  const notes = [
    rest.length && texts.others(rest.length, texts.share(rest.reduce((sum, term) => sum + term.share, 0))),
    explained.rest && texts.inGeneral(texts.share(explained.rest)),
  ].filter(Boolean);
  return h(
    "div",
    {},
    terms.length ? sharesTable(terms) : h("p", { class: "note" }, texts.noWords),
    notes.map((note) => h("p", { class: "note" }, note)),
    h("p", { class: "note" }, explained.unit === "probability" ? texts.probabilityNote : texts.wordsNote),
  );
}

function lost(whyNot) {
  const list = (title, items) => items.length > 0 && h("div", {}, h("h3", { class: "small-title" }, title), h("ul", { class: "chips plain" }, items.map((text) => h("li", { class: "chip" }, text))));
  return [
    h(
      "div",
      { class: "lost-columns" },
      list(texts.against, whyNot.against.slice(0, 6).map((term) => `${term.name} ${texts.share(term.share)}`)),
      list(texts.missing, whyNot.missing.map((term) => term.name)),
      list(texts.instead, whyNot.instead.map((found) => `${found.label} ${percent(found.probability)}`)),
    ),
  ];
}

// The trees of an ensemble, the one that counts most first.
function pathsOf(explained, lostAt) {
  const trees = explained.experts.filter((expert) => expert.path).sort((one, other) => other.weight - one.weight);
  if (!trees.length) return null;
  const chosen = trees[Math.min(tree, trees.length - 1)];
  const name = (node) => `${nameOf(node)} ${node.probability}`;
  const lostNode = lostAt && chosen.path.find((node) => name(node) === name(lostAt));
  const picture = h("div", { class: "picture" });
  drawn(picture, pathPicture(chosen.path, lostNode));
  const choices = trees.map((each, number) =>
    button(texts.pathOf(number + 1), () => { tree = number; showWhy(); }, { class: "quiet", "aria-pressed": String(each === chosen), title: texts.weight(percent(each.weight)) }),
  );
  return h("div", {}, trees.length > 1 && h("div", { class: "row" }, choices), evidenceOf(chosen), picture, h("p", { class: "note" }, texts.pathNote));
}

const evidenceOf = (expert) => h("p", { class: "evidence" }, texts.evidence(percent(expert.probability), percent(expert.weight)));

// Why the steps and the label's percentage differ.
function joinedOf({ experts, probability }) {
  const average = percent(experts.reduce((sum, expert) => sum + expert.weight * expert.probability, 0));
  const said = experts.length > 1 ? texts.joined(average) : texts.alone(average);
  return h("p", { class: "note", id: "why-joined" }, said, average !== percent(probability) && ` ${texts.mapped(percent(probability))}`);
}

function neighboursOf(explained) {
  const expert = explained.experts.find((each) => each.neighbours?.length);
  if (!expert) return null;
  const all = expert.neighbours;
  const withIt = all.filter((near) => near.has_label);
  const listed = [...withIt, ...all.filter((near) => !near.has_label)].slice(0, ROWS);
  const rows = listed.map((near) =>
    h(
      "li",
      { class: near.has_label ? "near has" : "near" },
      h("span", { class: "label" }, texts.neighbour(near.row)),
      h("span", { class: "note" }, `${texts.similar(percent(near.similarity))} · ${near.has_label ? texts.hasLabel : texts.lacksLabel}`),
      h("span", { class: "words" }, near.labels.slice(0, LABELS).join(", "), near.labels.length > LABELS && ` ${texts.more(near.labels.length - LABELS)}`),
      h("span", { class: "note words" }, texts.inCommon(near.terms.slice(0, 5).map((term) => term.name).join(", "))),
    ),
  );
  return [h("h3", { class: "small-title" }, texts.neighbours), evidenceOf(expert), h("p", { class: "note" }, texts.neighboursNote(withIt.length, all.length)), h("ul", { class: "nears" }, rows)];
}

function forestOf(explained) {
  const expert = explained.experts.find((each) => each.trees !== undefined);
  return expert ? [evidenceOf(expert), h("p", { class: "note" }, texts.forest(expert.trees_with_label, expert.trees))] : null;
}
