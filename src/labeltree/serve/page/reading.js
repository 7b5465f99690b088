// Files as documents: lines of text, tables, JSON lines. All in the browser.

import { texts } from "./texts.js";

export const MOST_ROWS = 20_000;
export const MOST_MEGABYTES = 25;

export class BadFile extends Error {}

// What stands until the closing quote, and where that is passed.
function quoted(content, start) {
  const parts = [];
  for (let place = start; ; ) {
    const next = content.indexOf('"', place);
    if (next < 0) return [parts.join("") + content.slice(place), content.length];
    const isDoubled = content[next + 1] === '"';
    parts.push(content.slice(place, next + (isDoubled ? 1 : 0)));
    if (!isDoubled) return [parts.join(""), next + 1];
    place = next + 2;
  }
}

// Rows of a table whose cells may be quoted; a quote within is doubled.
export function tableRows(content, separator) {
  const rows = [];
  let cells = [];
  let place = 0;
  const end = content.length;
  while (place <= end) {
    let cell = "";
    if (content[place] === '"') [cell, place] = quoted(content, place + 1);
    let stop = place;
    while (stop < end && content[stop] !== separator && content[stop] !== "\n") stop += 1;
    cells.push(cell + content.slice(place, stop).replace(/\r$/, ""));
    if (stop >= end || content[stop] === "\n") {
      if (cells.length > 1 || cells[0] !== "") rows.push(cells);
      cells = [];
    }
    place = stop + 1;
  }
  return rows;
}

const SEPARATORS = [",", "\t", ";"];

function readTable(content, notes) {
  const head = content.slice(0, content.indexOf("\n") + 1 || undefined);
  const separator = SEPARATORS.reduce((best, each) => (head.split(each).length > head.split(best).length ? each : best));
  const [names, ...rows] = tableRows(content, separator);
  const lower = (names ?? []).map((name) => name.trim().toLowerCase());
  let column = lower.indexOf("text");
  const labels = lower.indexOf("labels");
  if (column < 0) {
    column = 0;
    notes.push(texts.fileNoText);
    if (rows.length === 0) return [];
  }
  const listed = (cell) => (cell ?? "").split(/[;|]/).map((label) => label.trim()).filter(Boolean);
  return rows.map((cells) => ({ text: cells[column] ?? "", labels: labels < 0 ? null : listed(cells[labels]) }));
}

function readJsonLines(name, content) {
  return content.split("\n").flatMap((line, number) => {
    if (!line.trim()) return [];
    let record;
    try {
      record = JSON.parse(line);
    } catch {
      record = null;
    }
    if (typeof record?.text !== "string") throw new BadFile(texts.fileBad(name, number + 1, texts.fileNotJson));
    return [{ text: record.text, labels: Array.isArray(record.labels) ? record.labels.map(String) : null }];
  });
}

const readLines = (content) => content.split(/\r?\n/).filter((line) => line.trim()).map((text) => ({ text, labels: null }));

export async function readFile(file) {
  if (file.size > MOST_MEGABYTES * 1e6) throw new BadFile(texts.fileTooLarge(file.name, MOST_MEGABYTES));
  const content = (await file.text()).replace(/^\ufeff/, "").toWellFormed();
  const notes = [];
  const kind = file.name.toLowerCase().split(".").at(-1);
  let documents;
  if (kind === "jsonl" || kind === "ndjson" || kind === "json") documents = readJsonLines(file.name, content);
  else if (kind === "csv" || kind === "tsv") documents = readTable(content, notes);
  else documents = readLines(content);
  documents = documents.filter((document) => document.text.trim());
  if (!documents.length) throw new BadFile(texts.fileEmpty(file.name));
  if (documents.length > MOST_ROWS) notes.push(texts.fileCut(MOST_ROWS));
  return { documents: documents.slice(0, MOST_ROWS), notes };
}

// A cell that begins like a formula would be run by a spreadsheet: a quote before it makes it text.
export function csvCell(value) {
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r;]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
