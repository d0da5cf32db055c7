// Small parts that several pages are made of.

import { Refused } from "./api.js";
import { h, put } from "./dom.js";
import { t } from "./texts.js";

/** A part of a page under a heading. */
export function card(title, ...children) {
  return h("section", { class: "card" }, h("h2", {}, title), children);
}

/** What was refused, where it was asked for. */
export function refusal(error) {
  if (!(error instanceof Refused)) throw error;
  return h("div", { class: "refusal", role: "alert" }, h("p", {}, error.message), error.next ? h("p", { class: "next" }, error.next) : null);
}

/** A button that does something at the daemon; what it refuses is told in `place`. */
export function does(label, act, place, attributes = {}) {
  const button = h("button", { type: "button", ...attributes }, label);
  button.addEventListener("click", async () => {
    button.disabled = true;
    place.replaceChildren();
    try {
      await act();
    } catch (error) {
      place.replaceChildren(refusal(error));
    } finally {
      const away = document.activeElement === document.body;
      button.disabled = false;
      if (away) button.focus();
    }
  });
  return button;
}

/** Faults in words, the worst first, with what to do. */
export function faults(found) {
  return h(
    "ul",
    { class: "faults" },
    found.map((fault) => h("li", { class: fault.severity ?? "" }, h("p", {}, fault.text), fault.next ? h("p", { class: "next" }, fault.next) : null))
  );
}

/** A table: `head` of texts, `rows` of texts or elements; the first of a row names it. */
export function table(caption, head, rows, attributes = {}) {
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption, "data-key": caption },
    h(
      "table",
      attributes,
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, head.map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, place) => (place ? h("td", {}, cell) : h("th", { scope: "row" }, cell))))))
    )
  );
}

/** A labelled choice; `options` of `[value, text]`. */
export function choice(label, options, chosen, changed, attributes = {}) {
  const select = h(
    "select",
    { onchange: () => changed(select.value), ...attributes },
    options.map(([value, text]) => h("option", { value, selected: value === chosen }, text))
  );
  return h("label", { class: "field" }, h("span", {}, label), select);
}

/** Other options of a choice that is there: an open list, and the focus, stay where they are. */
export function offer(field, options, chosen) {
  const select = field.querySelector("select");
  for (const [place, [value, text]] of options.entries()) {
    const option = select.options[place] ?? select.appendChild(h("option", {}));
    option.value = value;
    put(option, text);
  }
  select.options.length = options.length;
  select.value = chosen;
}

export const busy = (text = t("panel_loading")) => h("p", { class: "busy" }, text);
