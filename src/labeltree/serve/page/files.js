// A file of texts: tagged in parts, shown as a table, to be taken home.

import { api } from "./api.js";
import { button, download, find, h } from "./dom.js";
import { scorecard } from "./measuring.js";
import { BadFile, csvCell, MOST_MEGABYTES, MOST_ROWS, readFile } from "./reading.js";
import { scorecardParts } from "./scorecard.js";
import { change, current, settings, state } from "./state.js";
import { isRuled, question } from "./suggestions.js";
import { percent, texts } from "./texts.js";

const PART = 64; // texts of a request: few enough to see it move
const PAGE = 50; // rows on the screen
const CLIPPED = 240; // characters of a text in the table
let job = null; // { name, documents, results, stop }

const place = () => find("panel-file");

export function showFiles() {
  if (place().firstChild && place().dataset.model === state.model) return;
  place().dataset.model = state.model;
  const isText = current()?.input === "text";
  const input = h("input", { type: "file", id: "file", class: "hidden", accept: ".txt,.csv,.tsv,.jsonl,.ndjson,.json,text/plain,text/csv", onchange: () => input.files[0] && tagFile(input.files[0]) });
  place().replaceChildren(
    h(
      "div",
      { class: "card drop-zone" },
      h("h1", { class: "title" }, texts.fileTitle),
      h("p", {}, isText ? texts.fileText : texts.fileVectors),
      isText && [input, h("label", { for: "file", class: "strong as-button" }, texts.choose), h("p", { class: "note" }, texts.fileLimits(MOST_ROWS, MOST_MEGABYTES))],
    ),
    h("div", { id: "tagged", "aria-live": "polite" }),
  );
}

export async function tagFile(file) {
  showFiles();
  if (current()?.input !== "text") return;
  job?.stop.abort();
  try {
    const { documents, notes } = await readFile(file);
    const mine = (job = { name: file.name, documents, notes, results: [], stop: new AbortController() });
    await tag(mine);
  } catch (problem) {
    if (problem.name === "AbortError") return;
    const told = problem instanceof BadFile || problem.status ? problem.message : texts.offline;
    find("tagged").replaceChildren(h("p", { class: "card problem", role: "alert" }, told));
  }
}

// Texts of a request: so many, or as many as its bytes allow.
function nextPart(documents, start) {
  const most = Math.min(PART, settings.most_documents);
  let bytes = 0;
  let end = start;
  while (end < documents.length && end - start < most) {
    bytes += 4 * Math.min(documents[end].text.length, settings.most_characters);
    if (end > start && bytes > settings.most_bytes / 2) break;
    end += 1;
  }
  return documents.slice(start, end).map((document) => document.text.slice(0, settings.most_characters).toWellFormed());
}

async function tag(mine) {
  const { documents, results, stop } = mine;
  const bar = h("progress", { max: documents.length, value: 0, "aria-label": texts.tagging(mine.name) });
  const said = h("span", { class: "note" }, texts.tagged(0, documents.length));
  const cancel = () => {
    stop.abort();
    find("tagged").replaceChildren();
  };
  find("tagged").replaceChildren(h("div", { class: "card" }, h("h2", { class: "title" }, texts.tagging(mine.name)), bar, h("div", { class: "row spread" }, said, button(texts.cancel, cancel, { class: "quiet" }))));
  const started = performance.now();
  const model = state.model;
  const asked = question();
  mine.rule = isRuled() ? current().rule : null;
  while (results.length < documents.length) {
    const part = nextPart(documents, results.length);
    const answer = await api.predict(model, { texts: part, ...asked }, stop.signal);
    results.push(...answer.results);
    bar.value = results.length;
    said.textContent = texts.tagged(results.length, documents.length);
  }
  if (job === mine) showTable(mine, ((performance.now() - started) / 1000).toFixed(1));
}

function showTable(mine, seconds) {
  const name = mine.name.replace(/\.\w+$/, "");
  const card = scorecard(mine.documents, mine.results, mine.rule);
  const table = h("div", {});
  find("tagged").replaceChildren(
    h(
      "div",
      { class: "card" },
      h("h2", { class: "title" }, mine.name),
      h("p", { class: "note", id: "tagged-done" }, [texts.taggedDone(mine.documents.length, seconds), ...mine.notes].join(" · ")),
      h(
        "div",
        { class: "row" },
        button(texts.downloadCsv, () => download(`${name}-labels.csv`, "text/csv", csvLines(mine)), { class: "strong", id: "download-csv" }),
        button(texts.downloadJsonl, () => download(`${name}-labels.jsonl`, "application/jsonl", jsonLines(mine)), { id: "download-jsonl" }),
      ),
      table,
    ),
  );
  if (card) find("tagged").prepend(h("div", { class: "card", id: "file-scorecard" }, h("h2", { class: "title" }, texts.measured), scorecardParts(card, texts.measuredOnFile(card.rows))));
  showRows(mine, table, 0);
}

function showRows(mine, table, first) {
  const { documents, results } = mine;
  const last = Math.min(first + PAGE, documents.length);
  const hasLabels = documents.some((document) => document.labels);
  const columns = [texts.columnText, texts.columnLabels, hasLabels && texts.columnTrue].filter(Boolean);
  const rows = documents.slice(first, last).map((document, number) => row(document, results[first + number], first + number, hasLabels));
  const go = (text, to, isPossible) => button(text, () => showRows(mine, table, to), { class: "quiet", disabled: !isPossible });
  table.replaceChildren(
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": texts.tableCaption },
      h("table", { class: "tagged" }, h("caption", { class: "hidden" }, texts.tableCaption), h("thead", {}, h("tr", {}, columns.map((title) => h("th", { scope: "col" }, title)))), h("tbody", {}, rows))),
    h("div", { class: "row spread" }, go(texts.previous, Math.max(0, first - PAGE), first > 0), h("span", { class: "note" }, texts.pages(first + 1, last, documents.length)), go(texts.next, last, last < documents.length)),
  );
}

function row(document, result, number, hasLabels) {
  const truth = new Set(document.labels ?? []);
  const chips = result.labels.map(({ label, probability }) => h("li", { class: truth.has(label) ? "chip right" : "chip" }, h("span", {}, label), h("span", { class: "note" }, percent(probability))));
  const open = () => {
    change({ tab: "text", text: document.text, label: "" });
    find("text").focus();
  };
  return h(
    "tr",
    {},
    h("td", {}, h("button", { type: "button", class: "text-button", "aria-label": texts.openText(number + 1), title: texts.open, onclick: open }, document.text.slice(0, CLIPPED))),
    h("td", {}, h("ul", { class: "chips" }, chips)),
    hasLabels && h("td", {}, [...truth].join(", ")),
  );
}

function csvLines({ documents, results }) {
  const lines = ["text,labels,probabilities\r\n"];
  documents.forEach((document, number) => {
    const { labels } = results[number];
    const cells = [document.text, labels.map((found) => found.label).join(";"), labels.map((found) => found.probability.toFixed(4)).join(";")];
    lines.push(`${cells.map(csvCell).join(",")}\r\n`);
  });
  return lines;
}

const jsonLines = ({ documents, results }) =>
  documents.map((document, number) => `${JSON.stringify({ text: document.text, labels: results[number].labels.map((found) => found.label), probabilities: results[number].labels.map((found) => found.probability) })}\n`);
