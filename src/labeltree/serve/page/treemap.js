// The tree of labels as a map to walk through: a node's children at a time, as the service gives them.

import { api, channel } from "./api.js";
import { button, drawn, h, s } from "./dom.js";
import { change, state } from "./state.js";
import { number, texts } from "./texts.js";

const AT_ONCE = 150; // tiles; a flat tree has as many children as labels
const latest = channel();
let shownLabel = null; // what is told of a label, once one is chosen
let zoomedFrom = null; // the field that was clicked

// Rectangles of given areas, as square as can be (Bruls, Huizing and van Wijk 2000).
export function squarified(sizes, width, height) {
  const total = sizes.reduce((sum, size) => sum + size, 0) || 1;
  const areas = sizes.map((size) => (size / total) * width * height);
  const found = [];
  let [x, y, w, ht] = [0, 0, width, height];
  const worst = (sum, least, most, side) => Math.max((side * side * most) / (sum * sum), (sum * sum) / (side * side * least));
  for (let start = 0; start < areas.length; ) {
    const side = Math.min(w, ht);
    let end = start + 1;
    let sum = areas[start];
    while (end < areas.length && worst(sum + areas[end], areas[end], areas[start], side) <= worst(sum, areas[end - 1], areas[start], side)) sum += areas[end++];
    const thick = side > 0 ? sum / side : 0;
    let along = 0;
    for (const area of areas.slice(start, end)) {
      const long = thick > 0 ? area / thick : 0;
      found.push(w >= ht ? { x, y: y + along, width: thick, height: long } : { x: x + along, y, width: long, height: thick });
      along += long;
    }
    if (w >= ht) [x, w] = [x + thick, w - thick];
    else [y, ht] = [y + thick, ht - thick];
    start = end;
  }
  return found;
}

export async function showTree(place, tell) {
  shownLabel = tell;
  const answer = await latest((signal) => api.tree(state.model, { tree: state.tree, node: state.node, limit: AT_ONCE }, signal));
  if (answer) draw(place, answer);
}

export async function goToLabel(label) {
  const answer = await api.tree(state.model, { tree: state.tree, label, limit: 1 });
  change({ node: answer.path.at(-1).node });
  shownLabel(label);
}

function draw(place, answer) {
  const { path, children } = answer;
  const hadFocus = place.contains(document.activeElement);
  const crumbs = path.map((node, depth) => {
    const name = depth ? (node.labels[0] ?? "") : texts.treeRoot;
    const isLast = depth === path.length - 1;
    return h("li", {}, isLast ? h("span", { "aria-current": "true" }, name) : button(name, () => change({ node: node.node }), { class: "quiet" }), h("span", { class: "note" }, ` ${number(node.n_labels)}`));
  });
  const map = h("div", { class: "treemap", id: "treemap" });
  place.replaceChildren(h("nav", { "aria-label": texts.tree }, h("ol", { class: "crumbs" }, crumbs)), map);
  const tiles = [...children];
  drawn(map, (width) => mapPicture(tiles, width, path));
  const svg = map.firstChild;
  if (svg) zoom(svg, svg.viewBox.baseVal.width, svg.viewBox.baseVal.height);
  if (hadFocus) map.querySelector("[tabindex='0']")?.focus();
  if (answer.n_children > tiles.length) place.append(moreButton(answer, tiles, map, path));
}

function moreButton(answer, tiles, map, path) {
  const more = button(texts.treeMore(answer.n_children - tiles.length), async () => {
    const next = await api.tree(state.model, { tree: answer.tree, node: path.at(-1).node, offset: tiles.length, limit: AT_ONCE });
    tiles.splice(0, tiles.length, ...next.children); // the next ones in their place: a map of all would be dust
    tiles.offset = (tiles.offset ?? 0) + AT_ONCE;
    map.replaceChildren(mapPicture(tiles, map.clientWidth, path));
    const left = answer.n_children - tiles.offset - tiles.length;
    if (left > 0) more.textContent = texts.treeMore(left);
    else more.remove();
  });
  return more;
}

function mapPicture(tiles, width, path) {
  const height = Math.round(Math.min(560, Math.max(240, width * 0.6), 150 + 60 * Math.sqrt(tiles.length)));
  const mean = tiles.reduce((sum, tile) => sum + tile.rows, 0) / Math.max(1, tiles.length);
  const sizes = tiles.map((tile) => Math.max(tile.rows, 0.35 * mean, 1));
  const densest = Math.max(...tiles.map((tile) => tile.rows / tile.n_labels), 1);
  const groups = squarified(sizes, width, height).map((box, place) => tileOf(tiles[place], box, place, densest));
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": texts.tree, class: "map" }, groups);
  svg.addEventListener("keydown", (event) => moveByKeys(event, svg, path));
  return svg;
}

// What one will see inside, faintly.
function fieldsOf(parts, { x, y, width, height }) {
  if (parts.length < 2 || width < 24 || height < 24) return "";
  const mean = parts.reduce((sum, part) => sum + part, 0) / parts.length;
  const boxes = squarified(parts.map((part) => Math.max(part, 0.35 * mean, 1)), width, height);
  const place = (value) => value.toFixed(1);
  return boxes.map((box) => `M${place(x + box.x)} ${place(y + box.y)}h${place(box.width)}v${place(box.height)}`).join("");
}

function act(tile, box) {
  if (!tile.n_children) return shownLabel(tile.labels[0]);
  zoomedFrom = box;
  return change({ node: tile.node });
}

// The field that was clicked becomes the map; on the way back the map comes from a little nearer.
function zoom(svg, width, height) {
  if (!svg || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const box = zoomedFrom;
  const begin = box
    ? `translate(${box.x}px, ${box.y}px) scale(${box.width / width}, ${box.height / height})`
    : "scale(1.04)";
  svg.animate([{ transform: begin, opacity: 0.3 }, { transform: "none", opacity: 1 }], { duration: 240, easing: "ease-out" });
  zoomedFrom = null;
}

function tileOf(tile, box, place, densest) {
  const isLeaf = !tile.n_children;
  const names = isLeaf ? tile.labels.slice(0, 1) : tile.labels;
  const told = texts.treeNode(names.join(", "), tile.n_labels, tile.rows);
  const shade = 0.05 + 0.25 * (Math.log1p(tile.rows / tile.n_labels) / Math.log1p(densest));
  const inner = { x: box.x + 1.5, y: box.y + 1.5, width: Math.max(0, box.width - 3), height: Math.max(0, box.height - 3) };
  const room = Math.floor((inner.width - 12) / 7.2);
  const lines = [...names.map((name) => ({ name, class: "name" })), ...(isLeaf ? [] : [{ name: number(tile.n_labels), class: "value" }])];
  const fitting = room < 3 ? [] : lines.slice(0, Math.max(0, Math.floor((inner.height - 6) / 16)));
  const text = fitting.map((line, row) =>
    s("text", { x: 7, y: 17 + row * 16, class: `${line.class}${row ? " later" : ""}` }, line.name.length > room ? `${line.name.slice(0, room - 1)}…` : line.name),
  );
  return s(
    "g",
    { class: isLeaf ? "tile leaf" : "tile", role: "button", tabindex: place ? "-1" : "0", "aria-label": told, "data-node": tile.node, onclick: () => act(tile, box), onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(tile, box); } } },
    s("title", {}, told),
    s("rect", { ...inner, rx: 5, "fill-opacity": shade.toFixed(3) }),
    s("path", { d: fieldsOf(tile.parts, inner), class: "fields" }),
    s("svg", inner, text), // which cuts what is too long
  );
}

// Tiles lie in rows that bend: arrows go to the nearest one in their direction.
function moveByKeys(event, svg, path) {
  if ((event.key === "Backspace" || event.key === "Escape") && path.length > 1) {
    event.preventDefault();
    event.stopPropagation();
    change({ node: path.at(-2).node });
    return;
  }
  const direction = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
  const from = event.target.closest(".tile");
  if (!direction || !from) return;
  event.preventDefault();
  const middle = (tile) => {
    const box = tile.querySelector("rect").getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
  };
  const [x, y] = middle(from);
  let best = null;
  for (const tile of svg.querySelectorAll(".tile")) {
    const [there, below] = middle(tile);
    const ahead = (there - x) * direction[0] + (below - y) * direction[1];
    const aside = Math.abs((there - x) * direction[1]) + Math.abs((below - y) * direction[0]);
    if (tile !== from && ahead > 1 && (!best || ahead + 2 * aside < best.far)) best = { tile, far: ahead + 2 * aside };
  }
  if (!best) return;
  from.setAttribute("tabindex", "-1");
  best.tile.setAttribute("tabindex", "0");
  best.tile.focus();
}
