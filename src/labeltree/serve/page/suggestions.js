// Suggestions as one types.

import { api, channel } from "./api.js";
import { decide, decisionOf, showDecisions } from "./corrections.js";
import { button, debounce, find, h } from "./dom.js";
import { change, current, document_, models, settings, state, suggested } from "./state.js";
import { percent, texts } from "./texts.js";

const WAIT = 40; // ms after the last key: answers come in a few, so that this is most of what one waits
const SLOW = 600; // ms without an answer: until then greying would only flicker
const latest = channel();
let slow = 0; // the timer of the latest question
export let shown = []; // the labels on the screen
const listeners = [];
export const onSuggestions = (listen) => listeners.push(listen);

export function startSuggestions() {
  const k = find("k");
  const threshold = find("threshold");
  k.addEventListener("input", () => change({ k: Number(k.value) }));
  threshold.addEventListener("input", () => change({ threshold: Number(threshold.value) }));
  find("rule").addEventListener("change", (event) => change({ rule: event.target.value }));
  find("suggestions").addEventListener("keydown", moveByKeys);
  find("suggestions").addEventListener("click", (event) => suggested.isOld && event.stopPropagation(), { capture: true });
}

export const isRuled = () => Boolean(current()?.rule) && state.rule === "model";

export function showControls() {
  const model = current();
  const part = (input) => input.style.setProperty("--part", ((input.value - input.min) / (input.max - input.min)).toFixed(3));
  find("k").value = state.k;
  find("k-shown").textContent = texts.atMostLabels(state.k);
  find("threshold").value = state.threshold;
  find("threshold-shown").textContent = `${state.threshold} %`;
  part(find("k"));
  part(find("threshold"));
  find("rule-control").hidden = !model?.rule;
  find("k-control").hidden = isRuled(); // it says how many
  if (model?.rule) {
    const option = (value, text) => h("option", { value, selected: state.rule === value }, text);
    find("rule").replaceChildren(option("model", texts.ruleModel(model.rule)), option("none", texts.ruleNone));
  }
}

export function question() {
  const asked = { threshold: state.threshold / 100, rule: state.rule };
  if (!isRuled()) asked.k = Math.min(state.k, settings.most_labels);
  return asked;
}

async function suggest() {
  const given = document_();
  if (!state.text.trim() || given.wrong) {
    latest.end();
    show({ labels: [], exact: true, known_words: true }, given.wrong ? texts.vectorWrong(given.wrong) : texts.empty);
    return;
  }
  const started = performance.now();
  clearTimeout(slow);
  slow = setTimeout(setOld, SLOW, true);
  try {
    const answer = await latest((signal) => api.predict(state.model, { ...given, ...question() }, signal));
    if (!answer) return; // a newer text was asked about meanwhile
    find("took").textContent = texts.took(Math.max(1, Math.round(performance.now() - started)));
    if (answer.model.version !== current().version) renew();
    show(answer.results[0], texts.none);
    find("notice").hidden = true;
  } catch (problem) {
    setOld(true);
    const isGone = problem.status === undefined;
    find("notice").textContent = isGone ? texts.offline : problem.message;
    find("notice").hidden = false;
    if (isGone) setTimeout(suggestSoon, 2000);
  }
}

// Suggestions for an earlier text stay to be read, but nothing can be decided by them.
function setOld(isOld) {
  clearTimeout(slow);
  if (suggested.isOld === isOld) return;
  suggested.isOld = isOld;
  find("panel-text").classList.toggle("old", isOld);
  refresh();
  showDecisions();
}

// Models are replaced while the service runs.
async function renew() {
  for (const model of (await api.models()).models) models.set(model.name, model);
  showControls();
}

export const suggestSoon = debounce(WAIT, suggest);
export const suggestNow = suggest;

function show(result, none) {
  shown = result.labels;
  setOld(false);
  const list = find("suggestions");
  const focused = list.contains(document.activeElement) ? document.activeElement.dataset : null;
  list.replaceChildren(...shown.map(item));
  if (!shown.length) {
    list.append(h("li", { class: "nothing" }, none));
    find("took").textContent = "";
  }
  if (focused) [...list.querySelectorAll("button")].find((each) => each.dataset.label === focused.label && each.dataset.act === focused.act)?.focus();
  const probabilities = shown.map((found) => found.probability);
  find("expectation").replaceChildren(
    h("strong", {}, texts.expectation(probabilities)),
    ...[!result.known_words && texts.unknownWords, !result.exact && texts.notExact, shown.length > 0 && !current()?.calibrated && texts.notCalibrated]
      .filter(Boolean)
      .map((said) => h("span", {}, ` ${said}`)),
  );
  if (state.text.trim()) find("spoken").textContent = texts.spoken(shown.length, shown[0]?.label);
  for (const listen of listeners) listen();
}

function item({ label, probability }) {
  const isOff = suggested.isOld && "true";
  const said = decisionOf(label);
  const part = Math.max(probability, 0.003).toFixed(4);
  const decideButton = (kind, sign, text) =>
    button(sign, () => decide(label, said === kind ? null : kind), {
      class: `decide ${kind}`, "aria-label": text(label), title: text(label), "aria-pressed": String(said === kind), "data-label": label, "data-act": kind, "aria-disabled": isOff,
    });
  return h(
    "li",
    { class: ["suggestion", said, state.label === label && "chosen"].filter(Boolean).join(" ") },
    h(
      "button",
      {
        type: "button", class: "name", "data-label": label, "data-act": "why", "aria-pressed": String(state.label === label), "aria-disabled": isOff,
        "aria-label": texts.explain(label, percent(probability)), onclick: () => change({ label: state.label === label ? "" : label }),
      },
      h("span", { class: "label" }, label),
      h("span", { class: "percent" }, percent(probability)),
      h("span", { class: "bar", vars: { part } }),
    ),
    decideButton("accepted", "✓", texts.accept),
    decideButton("rejected", "✕", texts.reject),
  );
}

// Choices and decisions change how the list looks, not what is in it.
export function refresh() {
  const list = find("suggestions");
  const focused = list.contains(document.activeElement) ? document.activeElement.dataset : null;
  if (!shown.length) return;
  list.replaceChildren(...shown.map(item));
  if (focused) [...list.querySelectorAll("button")].find((each) => each.dataset.label === focused.label && each.dataset.act === focused.act)?.focus();
}

function moveByKeys(event) {
  const { label, act } = event.target.dataset;
  if (label === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  const places = shown.map((found) => found.label);
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) {
    const next = places[places.indexOf(label) + step];
    const target = [...find("suggestions").querySelectorAll("button")].find((each) => each.dataset.label === next && each.dataset.act === act);
    target?.focus();
  } else if (suggested.isOld) return;
  else if (event.key === "a") decide(label, decisionOf(label) === "accepted" ? null : "accepted");
  else if (event.key === "r") decide(label, decisionOf(label) === "rejected" ? null : "rejected");
  else return;
  event.preventDefault();
}
