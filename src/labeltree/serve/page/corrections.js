// Which labels a person says are right: of the text on the screen, and of texts that were kept.

import { api } from "./api.js";
import { button, download, find, h, remembered } from "./dom.js";
import { change, current, settings, state, suggested } from "./state.js";
import { texts } from "./texts.js";

const decisions = new Map(); // label: accepted or rejected, in the order of the decisions
const listeners = [];
let kept = readKept(); // records that the server does not have
let told = ""; // what became of the last one

export const onDecision = (listen) => listeners.push(listen);
export const decisionOf = (label) => decisions.get(label);

function readKept() {
  try {
    const found = JSON.parse(remembered.get("kept") ?? "[]");
    return Array.isArray(found) ? found.filter((record) => typeof record?.text === "string" && Array.isArray(record.labels)) : [];
  } catch {
    return [];
  }
}

function remember(records) {
  kept = records;
  remembered.set("kept", records.length ? JSON.stringify(records) : null);
}

export function decide(label, kind) {
  if (kind) decisions.set(label, kind);
  else decisions.delete(label);
  told = "";
  changed();
}

export function forgetDecisions() {
  decisions.clear();
  changed();
}

function changed() {
  for (const listen of listeners) listen();
  showDecisions();
}

const labelsThat = (kind) => [...decisions].filter(([, said]) => said === kind).map(([label]) => label);

export async function keep() {
  const labels = labelsThat("accepted");
  const rejected = labelsThat("rejected");
  if (suggested.isOld || !state.text.trim() || current()?.input !== "text" || labels.length + rejected.length === 0) return;
  const record = { text: state.text.toWellFormed(), labels, rejected, model: `${state.model}@${current().version}` };
  decisions.clear();
  if (settings.keeps_corrections) await send([record]);
  else {
    remember([...kept, record]);
    told = texts.keptHereNow;
  }
  change({ text: "", label: "" });
  changed();
  find("text").focus();
}

async function send(records) {
  const left = [...records];
  told = texts.keptByServer;
  try {
    while (left.length) {
      const { text, labels, rejected, model } = left[0];
      await api.correct(model.split("@")[0], { text, labels, rejected });
      left.shift();
    }
  } catch (problem) {
    told = texts.notStored(problem.message);
  }
  return remember([...kept.filter((record) => !records.includes(record)), ...left]);
}

const lines = () => kept.map((record) => `${JSON.stringify(record)}\n`);

export function showDecisions() {
  const place = find("decisions");
  if (current()?.input !== "text") {
    place.replaceChildren();
    return;
  }
  const labels = labelsThat("accepted");
  const canKeep = !suggested.isOld && decisions.size > 0 && state.text.trim();
  const chips = labels.map((label) =>
    h("li", { class: "chip" }, h("span", {}, label), button("✕", () => decide(label, null), { "aria-label": texts.remove(label), title: texts.remove(label) })),
  );
  const parts = [
    h(
      "div",
      { class: "row spread" },
      h("h3", { class: "small-title" }, texts.yourLabels),
      button(texts.keep, keep, { class: "strong", id: "keep", title: texts.keepHint, disabled: !canKeep }),
    ),
    chips.length ? h("ul", { class: "chips" }, chips) : h("p", { class: "note" }, texts.yourLabelsHint),
    h("p", { class: "note", role: "status" }, told),
  ];
  if (kept.length) parts.push(keptRow());
  place.replaceChildren(...parts);
}

function keptRow() {
  const forget = (event) => {
    if (event.target.dataset.sure) {
      remember([]);
      showDecisions();
      return;
    }
    event.target.dataset.sure = "yes";
    event.target.textContent = texts.forgetSure;
  };
  return h(
    "div",
    { class: "row kept" },
    h("span", { class: "note", id: "kept" }, texts.keptHere(kept.length)),
    button(texts.download, () => download("corrections.jsonl", "application/jsonl", lines()), { class: "quiet", id: "download-kept" }),
    settings.keeps_corrections && button(texts.sendAgain, () => send([...kept]).then(showDecisions), { class: "quiet" }),
    button(texts.forget, forget, { class: "quiet" }),
  );
}
