// A scorecard as pictures: measures, whether percentages hold, the labels found best and worst.

import { drawn, h } from "./dom.js";
import { barsPicture, calibrationPicture } from "./pictures.js";
import { percent, texts } from "./texts.js";

const LISTED = 8;

export function scorecardParts(card, said) {
  const facts = Object.entries(card.rule ? texts.measuresOfRule : texts.measures(percent(card.threshold ?? 0.5)))
    .filter(([key]) => card.measures[key] !== undefined)
    .map(([key, text]) => h("div", { class: "fact" }, h("dd", {}, percent(card.measures[key])), h("dt", {}, text)));
  const labels = (title, list, kind) =>
    list.length > 0 &&
    h("section", {}, h("h3", { class: "small-title" }, title), drawn(h("div", { class: "picture" }), barsPicture(list.slice(0, LISTED).map((each) => ({ name: each.label, value: each.f1, most: 1, kind, text: texts.judged(percent(each.f1), each.rows) })), title)));
  return h(
    "div",
    { class: "scorecard" },
    h("p", { class: "note" }, card.rule ? `${said} ${texts.measuredByRule(card.rule)}` : said),
    h("dl", { class: "facts" }, facts),
    h(
      "div",
      { class: "pictures" },
      card.calibration.length > 0 &&
        h("section", {}, h("h3", { class: "small-title" }, texts.calibration), drawn(h("div", { class: "picture" }), calibrationPicture(card.calibration)), h("p", { class: "note" }, texts.calibrationNote)),
      h("section", {}, labels(texts.best, card.best, "good"), labels(texts.worst, card.worst, "bad"), h("p", { class: "note" }, texts.bestNote(card.least_rows))),
    ),
  );
}
