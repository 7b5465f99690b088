// Files as documents: lines of text, tables, JSON lines. All in the browser.

import { texts } from "./texts.js";

export const MOST_ROWS = 20_000;
export const MOST_MEGABYTES = 25;

export class BadFile extends Error {}

// What is often given by mistake, by its first bytes.
const OTHER_KINDS = [
  ["%PDF-", texts.filePdf],
  ["PK\x03\x04", texts.fileZip],
  ["\x1f\x8b", texts.fileGzip],
  ["\xff\xfe", texts.fileUtf16],
  ["\xfe\xff", texts.fileUtf16],
];
const LINE_END = 10;
const LINE_ENDS = /\r\n|\n|\r/;

function badLine(bytes) {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  for (let start = 0, line = 1; ; line += 1) {
    const end = bytes.indexOf(LINE_END, start);
    try {
      decoder.decode(bytes.subarray(start, end < 0 ? undefined : end));
    } catch {
      return line;
    }
    if (end < 0) return line;
    start = end + 1;
  }
}

// Bytes that are no text would become suggestions for nonsense: they are refused, as on the command line.
export function decoded(name, bytes) {
  const isAt = (sign) => [...sign].every((character, place) => bytes[place] === character.charCodeAt(0));
  const [, reason] = OTHER_KINDS.find(([sign]) => isAt(sign)) ?? [];
  if (reason) throw new BadFile(texts.fileOther(name, reason));
  if (bytes.includes(0)) throw new BadFile(texts.fileOther(name, texts.fileBinary));
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new BadFile(texts.fileBad(name, badLine(bytes), texts.fileNotUtf8));
  }
}

// What stands until the closing quote, and where that is passed; nothing if there is none.
function quoted(content, start) {
  const parts = [];
  for (let place = start; ; ) {
    const next = content.indexOf('"', place);
    if (next < 0) return null;
    const isDoubled = content[next + 1] === '"';
    parts.push(content.slice(place, next + (isDoubled ? 1 : 0)));
    if (!isDoubled) return [parts.join(""), next + 1];
    place = next + 2;
  }
}

const isLineEnd = (character) => character === "\n" || character === "\r";

// Rows of a table, each with the line at which it begins: cells may be quoted, and then have several lines; a quote
// within is doubled.
export function tableRows(name, content, separator) {
  const rows = [];
  const end = content.length;
  let place = 0;
  let line = 1;
  while (place < end) {
    const row = { line, cells: [] };
    for (let isOpen = true; isOpen; ) {
      let cell = "";
      const isQuoted = content[place] === '"';
      if (isQuoted) {
        const start = place;
        const found = quoted(content, place + 1);
        if (!found) throw new BadFile(texts.fileBad(name, row.line, texts.fileQuote));
        [cell, place] = found;
        line += content.slice(start, place).split(LINE_ENDS).length - 1;
      }
      const rest = place;
      while (place < end && content[place] !== separator && !isLineEnd(content[place])) place += 1;
      if (isQuoted && rest < place) throw new BadFile(texts.fileBad(name, row.line, texts.fileAfterQuote));
      row.cells.push(cell + content.slice(rest, place));
      isOpen = content[place] === separator;
      if (isOpen) place += 1;
    }
    place += content[place] === "\r" && content[place + 1] === "\n" ? 2 : 1;
    line += 1;
    if (row.cells.length > 1 || row.cells[0] !== "") rows.push(row);
  }
  return rows;
}

const PREFIX = "__label__";
const LABEL_WORD = /(^|\s)__label__(\S*)/g;
const SEPARATORS = ["\t", ",", ";"];

const namesOf = (cells) => cells.map((cell) => cell.trim().toLowerCase());

// As on the command line: that by which a column is called “text”, or else the one that makes the most columns.
function separatorOf(head) {
  const columns = (separator) => namesOf(head.split(separator)).map((each) => each.replace(/^"(.*)"$/, "$1"));
  const isNamed = (separator) => columns(separator).includes("text");
  const most = (best, each) => (columns(each).length > columns(best).length ? each : best);
  return SEPARATORS.find(isNamed) ?? SEPARATORS.reduce(most);
}

function readTable(name, content, notes) {
  const head = content.split(LINE_ENDS).find((line) => line.trim()) ?? "";
  const rows = tableRows(name, content, separatorOf(head));
  const start = rows.findIndex(({ cells }) => cells.some((cell) => cell.trim()));
  if (start < 0) return [];
  const names = namesOf(rows[start].cells);
  const labels = names.indexOf("labels");
  let column = names.indexOf("text");
  if (column < 0) {
    column = 0;
    notes.push(texts.fileNoText);
  }
  const listed = (cell) => cell.split(";").map((label) => label.trim()).filter(Boolean);
  return rows.slice(start + 1).map(({ line, cells }) => {
    if (cells.length !== names.length) throw new BadFile(texts.fileBad(name, line, texts.fileFields(names.length, cells.length)));
    return { text: cells[column], labels: labels < 0 ? null : listed(cells[labels]) };
  });
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

// Lines of fastText: words with the prefix are labels, wherever they stand, and no part of the text.
function readLines(name, content) {
  const documents = content.split(/\r?\n/).map((line, number) => {
    if (!line.includes(PREFIX)) return { text: line, labels: [] };
    const labels = [];
    const text = line.replace(LABEL_WORD, (_, before, label) => {
      if (!label) throw new BadFile(texts.fileBad(name, number + 1, texts.fileNoName(PREFIX)));
      labels.push(label);
      return before;
    });
    return { text: text.trim(), labels };
  });
  return documents.some(({ labels }) => labels.length) ? documents : documents.map(({ text }) => ({ text, labels: null }));
}

export async function readFile(file) {
  if (file.size > MOST_MEGABYTES * 1e6) throw new BadFile(texts.fileTooLarge(file.name, MOST_MEGABYTES));
  const buffer = await file.arrayBuffer().catch(() => {
    throw new BadFile(texts.fileUnreadable(file.name)); // a folder, or a file that has changed or gone
  });
  const content = decoded(file.name, new Uint8Array(buffer));
  const notes = [];
  const kind = file.name.toLowerCase().split(".").at(-1);
  let documents;
  if (kind === "jsonl" || kind === "ndjson" || kind === "json") documents = readJsonLines(file.name, content);
  else if (kind === "csv" || kind === "tsv") documents = readTable(file.name, content, notes);
  else documents = readLines(file.name, content);
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
