// What the page shows, and how a link says it: after the #, which browsers keep to themselves.

import { ofTab } from "./dom.js";

export const USUAL = { tab: "text", model: "", text: "", k: 10, threshold: 1, rule: "model", label: "", tree: 0, node: 0 };
const TABS = ["text", "file", "model"];
const LONGEST_LINK = 12_000; // characters of a text; longer links are cut on their way

export const state = { ...USUAL };
export const settings = { version: "", keeps_corrections: false, most_documents: 256, most_characters: 1_000_000, most_bytes: 8_000_000, most_labels: 1000 };
export const models = new Map();
export const suggested = { isOld: false }; // what is suggested is of an earlier question: the newer is not answered

const listeners = [];
export const onChange = (listen) => listeners.push(listen);

export function change(values) {
  const changed = new Set(Object.keys(values).filter((name) => state[name] !== values[name]));
  if (!changed.size) return;
  Object.assign(state, values);
  if (changed.has("text")) ofTab.set("text", state.text);
  if (!models.size) return; // the service has not answered yet: what is typed by then is shown when it has
  history.replaceState(null, "", address(false));
  for (const listen of listeners) listen(changed);
}

export const current = () => models.get(state.model);

const whole = (value, least, most, usual) => {
  const n = Number(value);
  return Number.isInteger(n) && n >= least && n <= most ? n : usual;
};

// Links may come from anyone: what is not possible is left out.
export function read(fragment) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const get = (name) => given.get(name) ?? "";
  return {
    tab: TABS.includes(get("tab")) ? get("tab") : USUAL.tab,
    model: models.has(get("model")) ? get("model") : (models.keys().next().value ?? ""),
    text: given.has("text") ? get("text") : (ofTab.get("text") ?? ""),
    k: whole(given.get("k") ?? NaN, 1, 50, USUAL.k),
    threshold: whole(given.get("threshold") ?? NaN, 0, 95, USUAL.threshold),
    rule: get("rule") === "none" ? "none" : "model",
    label: get("label"),
    tree: whole(given.get("tree") ?? NaN, 0, 1e6, 0),
    node: whole(given.get("node") ?? NaN, 0, 2 ** 31, 0),
  };
}

// The text is in an address only where a link is asked for: histories are read by others.
export function address(withText) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (name === "text" || value === USUAL[name]) continue;
    if (name === "model" && models.size < 2) continue;
    given.set(name, value);
  }
  if (withText && state.text && state.text.length <= LONGEST_LINK) given.set("text", state.text);
  const fragment = given.toString();
  return `${location.pathname}${location.search}${fragment ? `#${fragment}` : ""}`;
}
export const fitsLink = () => state.text.length <= LONGEST_LINK;

// What a request holds of the text: that, or the vector that it stands for.
export function document_() {
  const model = current();
  if (!model || model.input === "text") return { text: state.text.slice(0, settings.most_characters) };
  const vector = { indices: [], values: [] };
  for (const word of state.text.split(/\s+/).filter(Boolean)) {
    const [, column, value] = /^(\d{1,9}):(-?\d+(?:\.\d+)?(?:e-?\d+)?)$/i.exec(word) ?? [];
    if (column === undefined) return { wrong: word };
    vector.indices.push(Number(column));
    vector.values.push(Number(value));
  }
  return { vector };
}
