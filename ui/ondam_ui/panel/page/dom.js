// Elements, the short way. No text is ever taken for markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.setAttribute("class", value);
    else if (name in element && typeof value !== "string" && !(element instanceof SVGElement)) element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);

export const s = (tag, attributes, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

/** Sets a text only where it differs: a screen reader that was told it is not told again. */
export function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** The children of `parent` become these. */
export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
}

/** As `fill`, but what had the focus has it again, and what was opened stays so; `data-key` says what is the same. */
export function refill(parent, ...children) {
  const held = parent.contains(document.activeElement) ? document.activeElement.closest("[data-key]")?.dataset.key : null;
  const summaries = () => [...parent.querySelectorAll("summary[data-key]")];
  const opened = new Map(summaries().map((one) => [one.dataset.key, one.parentElement.open]));
  fill(parent, ...children);
  for (const one of summaries()) one.parentElement.open = opened.get(one.dataset.key) ?? one.parentElement.open;
  if (held) parent.querySelector(`[data-key="${CSS.escape(held)}"]`)?.focus({ preventScroll: true });
}

let count = 0;
export const unique = (prefix) => `${prefix}-${++count}`;
