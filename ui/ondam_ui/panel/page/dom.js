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

let count = 0;
export const unique = (prefix) => `${prefix}-${++count}`;
