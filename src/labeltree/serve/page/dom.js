// Elements are made, never parsed from strings: whatever a label or a text holds, it stays text.

const SVG = "http://www.w3.org/2000/svg";

export const find = (id) => document.getElementById(id);

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "vars") for (const [key, part] of Object.entries(value)) element.style.setProperty(`--${key}`, part);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

export const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
export const s = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

export const button = (text, onclick, properties) => h("button", { type: "button", onclick, ...properties }, text);

export function download(name, type, parts) {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

export function debounce(wait, work) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(work, wait, ...given);
  };
}

// Pictures are drawn for the width that they have, and again when it changes.
export function drawn(element, draw) {
  let width = 0;
  const look = () => {
    const now = Math.round(element.clientWidth);
    if (now && now !== width) {
      width = now;
      element.replaceChildren(draw(width));
    }
  };
  new ResizeObserver(look).observe(element);
  look();
  return element;
}

// Storage may be forbidden, full or absent: then nothing is remembered, and nothing breaks.
export const stored = (kind) => ({
  get(name) {
    try {
      return window[kind].getItem(`labeltree:${name}`);
    } catch {
      return null;
    }
  },
  set(name, value) {
    try {
      if (value === null) window[kind].removeItem(`labeltree:${name}`);
      else window[kind].setItem(`labeltree:${name}`, value);
      return true;
    } catch {
      return false;
    }
  },
});
export const remembered = stored("localStorage");
export const ofTab = stored("sessionStorage");
