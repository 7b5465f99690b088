// Pictures, drawn as SVG for a given width.

import { h, s } from "./dom.js";
import { number, percent, texts } from "./texts.js";

const clipped = (text, length) => (text.length > length ? `${text.slice(0, Math.max(1, length - 1)).trimEnd()}…` : text);
export const nameOf = (node) => node.labels.join(", ") + (node.n_labels > node.labels.length ? ` ${texts.more(node.n_labels - node.labels.length)}` : "");

// The way from the root to a label: at each step the node that was taken, among a few that were not.
export function pathPicture(path, lost) {
  const step = 46;
  const left = 64;
  return (width) => {
    const y = (place) => 20 + place * step;
    const room = Math.floor((width - left - 90) / 6.6);
    const branches = path.slice(1).flatMap((node, place) => {
      const from = y(place);
      const to = y(place + 1);
      const curve = (x) => `M${left - 34} ${from} C${left - 34} ${from + 20} ${x} ${to - 24} ${x} ${to}`;
      const others = [4, 16, 44, 56].map((x) => [s("path", { d: curve(x), class: "twig" }), s("circle", { cx: x, cy: to, r: 2.2, class: "bud" })]);
      return [...others.flat(), s("path", { d: curve(left - 34), class: "branch", "stroke-width": (1 + 4 * node.probability).toFixed(2) })];
    });
    const nodes = path.map((node, place) => {
      const isLast = place === path.length - 1;
      const name = place === 0 ? texts.anyLabel : isLast ? node.labels[0] : nameOf(node);
      const isLost = node === lost;
      return s(
        "g",
        { class: `node${isLast ? " leaf" : ""}${isLost ? " lost" : ""}` },
        s("title", {}, `${name}: ${percent(node.probability)}`),
        s("circle", { cx: left - 34, cy: y(place), r: isLast ? 7 : 5 }),
        s("text", { x: left, y: y(place) + 4.5, class: "name" }, clipped(name, room)),
        s("text", { x: width - 2, y: y(place) + 4.5, class: "value", "text-anchor": "end" }, percent(node.probability)),
        isLost && s("text", { x: left, y: y(place) + 20, class: "remark" }, texts.lost),
      );
    });
    const height = y(path.length - 1) + 26;
    const told = path.map((node, place) => `${place ? nameOf(node) : texts.anyLabel} ${percent(node.probability)}`).join(" → ");
    return s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": told, class: "path-picture" }, branches, nodes);
  };
}

const FEW = 10; // suggestions: how many of so few are right is mostly chance

// Words and their shares, to both sides of a middle line.
export function sharesTable(terms) {
  const largest = terms.reduce((most, term) => Math.max(most, Math.abs(term.share)), 0) || 1;
  const rows = terms.map((term) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, term.name),
      h("td", { class: "value" }, texts.share(term.share)),
      h("td", { class: "bar-cell" }, h("span", { class: `share ${term.share >= 0 ? "for" : "against"}`, vars: { part: (Math.abs(term.share) / largest).toFixed(4) } })),
    ),
  );
  return h("table", { class: "shares" }, h("tbody", {}, rows));
}

export function calibrationPicture(points) {
  return (width) => {
    const side = Math.min(width, 380);
    const left = 46;
    const bottom = 40;
    const x = (p) => left + p * (side - left - 12);
    const y = (p) => side - bottom - p * (side - bottom - 12);
    const most = Math.max(...points.map((point) => point.n), 1);
    const ticks = [0, 0.25, 0.5, 0.75, 1].flatMap((p) => [
      s("line", { x1: x(p), y1: y(0), x2: x(p), y2: y(1), class: "grid" }),
      s("line", { x1: x(0), y1: y(p), x2: x(1), y2: y(p), class: "grid" }),
      s("text", { x: x(p), y: y(0) + 16, "text-anchor": "middle" }, `${100 * p}`),
      s("text", { x: left - 8, y: y(p) + 4, "text-anchor": "end" }, `${100 * p}`),
    ]);
    const line = points.filter((point) => point.n >= FEW).map((point, place) => `${place ? "L" : "M"}${x(point.probability).toFixed(1)} ${y(point.right).toFixed(1)}`).join("");
    const dots = points.map((point) =>
      s(
        "circle",
        { cx: x(point.probability), cy: y(point.right), r: (3 + 7 * Math.sqrt(point.n / most)).toFixed(1), class: point.n < FEW ? "dot few" : "dot" },
        s("title", {}, texts.calibrationPoint(percent(point.probability), percent(point.right), point.n)),
      ),
    );
    const told = points.map((point) => texts.calibrationPoint(percent(point.probability), percent(point.right), point.n)).join("; ");
    return s(
      "svg",
      { viewBox: `0 0 ${side} ${side}`, width: side, height: side, role: "img", "aria-label": told, class: "curve" },
      ticks,
      s("line", { x1: x(0), y1: y(0), x2: x(1), y2: y(1), class: "ideal" }),
      s("path", { d: line, class: "line" }),
      dots,
      s("text", { x: x(0.5), y: side - 4, "text-anchor": "middle", class: "axis" }, `${texts.calibrationX} (%)`),
      s("text", { x: 12, y: y(0.5), "text-anchor": "middle", class: "axis", transform: `rotate(-90 12 ${y(0.5)})` }, `${texts.calibrationY} (%)`),
    );
  };
}

// Bars with a name on the left and a value on the right; `value` is drawn, `text` is written.
export function barsPicture(bars, told) {
  const step = 26;
  return (width) => {
    const left = Math.min(220, width * 0.36);
    const right = Math.min(150, width * 0.28);
    const room = width - left - right;
    const most = Math.max(...bars.map((bar) => bar.value), 1e-12);
    const rows = bars.map((bar, place) => {
      const y = place * step;
      return s(
        "g",
        {},
        s("title", {}, `${bar.name}: ${bar.text}`),
        s("text", { x: left - 10, y: y + 17, "text-anchor": "end", class: "name" }, clipped(bar.name, Math.floor(left / 7.2))),
        s("rect", { x: left, y: y + 6, width: room, height: 14, rx: 4, class: "rail" }),
        s("rect", { x: left, y: y + 6, width: Math.max(bar.value ? 2 : 0, (room * bar.value) / (bar.most ?? most)).toFixed(1), height: 14, rx: 4, class: `bar ${bar.kind ?? ""}` }),
        s("text", { x: left + room + 10, y: y + 17, class: "value" }, bar.text),
      );
    });
    const label = `${told}: ${bars.map((bar) => `${bar.name} ${bar.text}`).join("; ")}`;
    return s("svg", { viewBox: `0 0 ${width} ${bars.length * step}`, width, height: bars.length * step, role: "img", "aria-label": label, class: "bars" }, rows);
  };
}

export const shortNumber = (n) => (n >= 1e6 ? `${(n / 1e6).toFixed(1)} M` : n >= 1e5 ? `${Math.round(n / 1e3)} k` : number(n));
