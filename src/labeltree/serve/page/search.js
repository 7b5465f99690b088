// A box that finds a label among any number of them: the service searches, the page shows a few.

import { api, channel } from "./api.js";
import { h } from "./dom.js";
import { state } from "./state.js";
import { texts } from "./texts.js";

const SHOWN = 12;
let boxes = 0;

// As a combobox, by the pattern of ARIA. `choose` gets the label.
export function searchBox(title, placeholder, choose) {
  const latest = channel();
  const id = `search-${(boxes += 1)}`;
  let found = [];
  let place = -1;
  const input = h("input", {
    id, type: "text", role: "combobox", autocomplete: "off", spellcheck: "false", placeholder,
    "aria-expanded": "false", "aria-controls": `${id}-list`, "aria-autocomplete": "list",
  });
  const list = h("ul", { id: `${id}-list`, role: "listbox", "aria-label": title, class: "found", hidden: true });
  const said = h("p", { class: "hidden", role: "status" });

  function close() {
    latest.end();
    list.hidden = true;
    said.textContent = "";
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    place = -1;
  }

  function take(label) {
    input.value = "";
    close();
    choose(label);
  }

  function point(next) {
    place = found.length ? (next + found.length) % found.length : -1;
    [...list.children].forEach((option, number) => option.setAttribute("aria-selected", String(number === place)));
    const option = list.children[place];
    if (!option?.id) return;
    input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  }

  async function look() {
    const part = input.value.trim();
    if (!part || !state.model) return close();
    const answer = await latest((signal) => api.labels(state.model, part, SHOWN, signal)).catch(() => undefined);
    if (!answer) return undefined;
    found = answer.labels;
    place = -1;
    const options = found.map(({ label, rows }, number) =>
      h(
        "li",
        { id: `${id}-${number}`, role: "option", "aria-selected": "false", onpointerdown: (event) => event.preventDefault(), onclick: () => take(label) },
        h("span", { class: "label" }, marked(label, part)),
        h("span", { class: "note" }, texts.rowsOfLabel(rows)),
      ),
    );
    const told = found.length ? texts.found(answer.n_found, found.length) : texts.nothingFound;
    if (answer.n_found > found.length || !found.length) options.push(h("li", { class: "note rest", role: "presentation" }, told));
    list.replaceChildren(...options);
    said.textContent = told;
    const { top, bottom } = input.getBoundingClientRect();
    list.classList.toggle("above", bottom + 330 > innerHeight && top > 340);
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    return undefined;
  }

  // The service prepares itself for a search.
  input.addEventListener("focus", () => state.model && api.labels(state.model, "", 1).catch(() => undefined), { once: true });
  input.addEventListener("input", look);
  input.addEventListener("blur", () => setTimeout(close, 100));
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && list.hidden) look();
    else if (event.key === "ArrowDown") point(place + 1);
    else if (event.key === "ArrowUp") point(place < 0 ? -1 : place - 1);
    else if (event.key === "Enter" && !list.hidden && found.length) take(found[Math.max(0, place)].label);
    else if (event.key === "Escape" && !list.hidden) close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return h("div", { class: "search" }, h("label", { for: id, class: "small-title" }, title), h("div", { class: "box" }, input, list), said);
}

function marked(label, part) {
  const start = label.toLowerCase().indexOf(part.toLowerCase());
  if (start < 0) return [label];
  return [label.slice(0, start), h("b", {}, label.slice(start, start + part.length)), label.slice(start + part.length)];
}
