// The text, and behind it the same text with marks: they lie in one cell of a grid, so that they always match.

import { find, h } from "./dom.js";
import { change, current, settings, state } from "./state.js";
import { texts } from "./texts.js";

const LEAST = 0.08; // of the largest share: weaker words are not marked

export function startEditor() {
  const text = find("text");
  text.addEventListener("input", () => change({ text: text.value }));
  find("clear").addEventListener("click", () => {
    change({ text: "", label: "" });
    text.focus();
  });
}

export function showText() {
  const text = find("text");
  if (text.value !== state.text) text.value = state.text;
  const isText = (current()?.input ?? "text") === "text";
  text.placeholder = isText ? texts.textPlaceholder : texts.vectorPlaceholder;
  find("clear").disabled = !state.text;
  const n = state.text.split(/\s+/).filter(Boolean).length;
  const isLong = state.text.length > settings.most_characters;
  find("text-facts").textContent = [texts.words(n), isLong && texts.tooLong(settings.most_characters)].filter(Boolean).join(" · ");
  mark([]);
}

// Offsets of the service count characters; those of the browser count halves of some of them.
function places(text) {
  if (!/[\ud800-\udbff]/.test(text)) return (offset) => offset;
  const found = [];
  let place = 0;
  for (const character of text) {
    found.push(place);
    place += character.length;
  }
  found.push(place);
  return (offset) => found[Math.min(offset, found.length - 1)];
}

// Pieces that do not overlap. Where words do (scripts without spaces), a character has its parts of both.
export function pieces(text, words) {
  const at = places(text);
  const found = [];
  for (let first = 0, last = 0; first < words.length; first = last) {
    let end = words[first].end;
    for (last = first + 1; last < words.length && words[last].start < end; last += 1) end = Math.max(end, words[last].end);
    if (last === first + 1) {
      found.push({ start: at(words[first].start), end: at(end), share: words[first].share });
      continue;
    }
    const begin = words[first].start;
    const shares = new Array(end - begin).fill(0);
    for (const word of words.slice(first, last)) {
      for (let place = word.start; place < word.end; place += 1) shares[place - begin] += word.share / (word.end - word.start);
    }
    shares.forEach((share, place) => found.push({ start: at(begin + place), end: at(begin + place + 1), share }));
  }
  return found;
}

export function mark(words) {
  const text = state.text;
  const all = pieces(text, words);
  const largest = all.reduce((most, piece) => Math.max(most, Math.abs(piece.share)), 0) || 1;
  const children = [];
  let end = 0;
  for (const { start, end: next, share } of all) {
    const part = Math.abs(share) / largest;
    if (part < LEAST || start < end) continue;
    children.push(text.slice(end, start));
    children.push(h("mark", { class: share >= 0 ? "for" : "against", vars: { part: part.toFixed(3) } }, text.slice(start, next)));
    end = next;
  }
  children.push(text.slice(end), "\u200b"); // so that a last empty line has its height
  find("backdrop").replaceChildren(...children);
}
