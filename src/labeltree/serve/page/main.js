// The page begins here: what it shows follows from the state, and every change goes through it.

import { api } from "./api.js";
import { forgetDecisions, keep, onDecision, showDecisions } from "./corrections.js";
import { find, h, ofTab, remembered } from "./dom.js";
import { showText, startEditor } from "./editor.js";
import { searchBox } from "./search.js";
import { address, change, fitsLink, models, onChange, read, settings, state } from "./state.js";
import { onSuggestions, refresh, showControls, startSuggestions, suggestNow, suggestSoon } from "./suggestions.js";
import { texts } from "./texts.js";
import { showWhy } from "./why.js";

const TABS = ["text", "file", "model"];
const THEMES = ["auto", "light", "dark"];
const loaded = {}; // the other tabs, which most never open

function fillTexts() {
  for (const element of document.querySelectorAll("[data-text]")) element.textContent = texts[element.dataset.text];
  for (const element of document.querySelectorAll("[data-label]")) element.setAttribute("aria-label", texts[element.dataset.label]);
}

function showTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  find("theme").textContent = texts.themes[theme];
}

function startTheme() {
  let theme = THEMES.includes(remembered.get("theme")) ? remembered.get("theme") : "auto";
  showTheme(theme);
  find("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    remembered.set("theme", theme);
    showTheme(theme);
  });
}

function startTabs() {
  for (const tab of TABS) find(`tab-${tab}`).addEventListener("click", () => change({ tab }));
  document.querySelector("[role=tablist]").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const next = step ? TABS[(TABS.indexOf(state.tab) + step + TABS.length) % TABS.length] : { Home: TABS[0], End: TABS.at(-1) }[event.key];
    if (!next) return;
    event.preventDefault();
    change({ tab: next });
    find(`tab-${next}`).focus();
  });
}

async function showTab() {
  for (const tab of TABS) {
    const isShown = tab === state.tab;
    find(`panel-${tab}`).hidden = !isShown;
    find(`tab-${tab}`).setAttribute("aria-selected", String(isShown));
    find(`tab-${tab}`).tabIndex = isShown ? 0 : -1;
  }
  if (state.tab === "model") (await part("model")).showModel();
  if (state.tab === "file") (await part("files")).showFiles();
}

const part = (name) => (loaded[name] ??= import(`./${name}.js`));

function startLink() {
  const link = find("link");
  link.addEventListener("click", async () => {
    history.replaceState(null, "", address(true));
    try {
      await navigator.clipboard.writeText(location.href);
    } catch {
      // Without a secure connection there is no clipboard: the address line has the link.
    }
    link.textContent = fitsLink() ? texts.linkCopied : texts.linkWithoutText;
    setTimeout(() => (link.textContent = texts.copyLink), 2500);
  });
}

function startDropping() {
  const shade = find("dropping");
  const isFile = (event) => event.dataTransfer?.types.includes("Files");
  addEventListener("dragover", (event) => {
    if (!isFile(event)) return;
    event.preventDefault();
    shade.hidden = false;
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) shade.hidden = true;
  });
  addEventListener("drop", async (event) => {
    shade.hidden = true;
    if (!isFile(event)) return;
    event.preventDefault();
    const [file] = event.dataTransfer.files;
    change({ tab: "file" });
    if (file) (await part("files")).tagFile(file);
  });
}

function showModels() {
  find("model").replaceChildren(...[...models.keys()].map((name) => h("option", { value: name, selected: name === state.model }, name)));
}

function follow(changed) {
  const any = (...names) => names.some((name) => changed.has(name));
  if (any("tab")) showTab();
  if (any("model")) showModels();
  if (any("text") && !state.text) forgetDecisions();
  if (any("text", "model")) showText();
  if (any("k", "threshold", "rule", "model")) showControls();
  if (any("model", "text")) showDecisions();
  if (any("text")) suggestSoon();
  else if (any("model", "k", "threshold", "rule")) suggestNow();
  else if (any("label")) {
    refresh();
    showWhy();
  }
  if (any("model") && !any("tab")) showTab();
}

function showSearch() {
  find("search").replaceChildren(searchBox(texts.findLabel, texts.findPlaceholder, (label) => change({ label })));
}

async function waitForService() {
  for (;;) {
    try {
      return await Promise.all([api.settings(), api.models()]);
    } catch (problem) {
      find("notice").textContent = problem.status ? problem.message : texts.offline;
      find("notice").hidden = false;
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
}

async function start() {
  fillTexts();
  startTheme();
  startTabs();
  startLink();
  startEditor();
  startSuggestions();
  startDropping();
  onChange(follow);
  onSuggestions(showWhy);
  onDecision(refresh);
  showSearch();
  onChange((changed) => changed.has("model") && showSearch()); // what was found is of another model
  addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && state.tab === "text") keep();
    if (event.key === "Escape" && state.label) change({ label: "" });
  });
  const [told, known] = await waitForService();
  find("notice").hidden = true;
  Object.assign(settings, told);
  for (const model of known.models) models.set(model.name, model);
  find("version").textContent = texts.version(settings.version);
  find("model").addEventListener("change", (event) => change({ model: event.target.value, label: "", tree: 0, node: 0 }));
  addEventListener("hashchange", () => change(read(location.hash)));
  Object.assign(state, read(location.hash));
  if (new URLSearchParams(location.hash.slice(1)).has("text")) ofTab.set("text", state.text);
  follow(new Set(["tab", "model", "text", "k"]));
  document.documentElement.dataset.ready = performance.now().toFixed(1); // for those who measure
  if (state.tab === "text" && matchMedia("(min-width: 60rem)").matches) find("text").focus();
}

start();
