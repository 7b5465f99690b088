// Asking the service. A token is asked for when the service wants one; what fails says why.

import { find, ofTab } from "./dom.js";
import { texts } from "./texts.js";

export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

let token = ofTab.get("token");
let asking = null; // the dialog is open

async function request(method, path, body, signal) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method, headers, signal, body: body && JSON.stringify(body), cache: "no-store" });
  const type = answer.headers.get("content-type") ?? "";
  const told = type.includes("json") ? await answer.json() : {};
  if (!answer.ok) throw new Problem(answer.status, told.detail ?? answer.statusText);
  return told;
}

export async function ask(method, path, body, signal) {
  for (let tries = 0; ; tries += 1) {
    const used = token;
    try {
      return await request(method, path, body, signal);
    } catch (problem) {
      if (problem.status === 401) {
        if (used === token) await askForToken(Boolean(used)); // else another request has asked already
      } else if ((problem.status === 429 || problem.status === 503) && tries < 3) {
        await new Promise((done) => setTimeout(done, 400 * 2 ** tries));
      } else throw problem;
    }
  }
}

function askForToken(isWrong) {
  asking ??= new Promise((done) => {
    const dialog = find("token-dialog");
    find("token-problem").textContent = isWrong ? texts.tokenWrong : "";
    find("token").value = "";
    dialog.oncancel = (event) => event.preventDefault(); // nothing works without one
    dialog.querySelector("form").onsubmit = (event) => {
      event.preventDefault();
      token = find("token").value.trim();
      ofTab.set("token", token);
      dialog.close();
      asking = null;
      done();
    };
    dialog.showModal();
  });
  return asking;
}

// One question at a time: a newer one ends the older, whose answer, however late, is never seen.
export function channel() {
  let current = null;
  const put = async (work) => {
    current?.abort();
    const mine = (current = new AbortController());
    try {
      const answer = await work(mine.signal);
      return current === mine ? answer : undefined;
    } catch (problem) {
      if (current !== mine || problem.name === "AbortError") return undefined;
      throw problem;
    }
  };
  put.end = () => {
    current?.abort();
    current = null;
  };
  return put;
}

const at = (model, rest) => `v1/models/${encodeURIComponent(model)}${rest}`;
const query = (values) => new URLSearchParams(Object.entries(values).filter(([, value]) => value !== undefined));

export const api = {
  settings: () => ask("GET", "v1/settings"),
  models: () => ask("GET", "v1/models"),
  predict: (model, body, signal) => ask("POST", at(model, "/predict"), body, signal),
  explain: (model, body, signal) => ask("POST", at(model, "/explain"), body, signal),
  whyNot: (model, body, signal) => ask("POST", at(model, "/why-not"), body, signal),
  correct: (model, body) => ask("POST", at(model, "/corrections"), body),
  labels: (model, q, limit, signal) => ask("GET", at(model, `/labels?${query({ q, limit })}`), undefined, signal),
  label: (model, label, signal) => ask("GET", at(model, `/label?${query({ label })}`), undefined, signal),
  about: (model, signal) => ask("GET", at(model, "/about"), undefined, signal),
  tree: (model, place, signal) => ask("GET", at(model, `/tree?${query(place)}`), undefined, signal),
};
