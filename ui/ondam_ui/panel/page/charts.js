// Lines over time and a histogram, as plain SVG drawn at the size that there is.

import { h, s } from "./dom.js";
import { day, ms, t } from "./texts.js";
import { step } from "./waterfall.js";
import { table } from "./words.js";

const LEFT = 44;
const BOTTOM = 22;
const TOP = 8;
const RIGHT = 8;

/** A figure that is drawn anew when its width changes, and its values in a table: `head` and `rows`. */
function plot(label, height, { head, rows }, draw) {
  const box = h("div", {});
  const told = h("details", {}, h("summary", { "data-key": `values ${label}` }, t("panel_values"), h("span", { class: "hidden" }, `: ${label}`)), table(label, head, rows));
  let width = 0;
  const redraw = () => {
    const found = Math.floor(box.clientWidth);
    if (!found || found === width) return;
    width = found;
    box.replaceChildren(s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, draw(width, height)));
  };
  new ResizeObserver(redraw).observe(box);
  return h("figure", { class: "plot" }, box, told);
}

/** Lines of a series: `lines` of `{name, kind, values}`, one value (or null) for each of `times` (ms). */
export function lines(label, height, { from, to, times, lines: found, budget = null, changes = [], small = false }) {
  const rows = times.flatMap((at, place) => {
    const values = found.map((line) => line.values[place]);
    return values.every((value) => value === null) ? [] : [[day(new Date(at).toISOString()), ...values.map(ms)]];
  });
  return plot(label, height, { head: [t("cli_column_time"), ...found.map((line) => `${line.name} (ms)`)], rows }, (width) => {
    const values = found.flatMap((line) => line.values).filter((value) => value !== null);
    const most = 1.08 * Math.max(small ? 20 : 100, ...values, budget && Math.max(...values, 0) > budget / 3 ? budget : 0);
    const left = small ? 38 : LEFT;
    const x = (at) => left + ((at - from) / Math.max(1, to - from)) * (width - left - RIGHT);
    const y = (value) => height - BOTTOM - (value / most) * (height - BOTTOM - TOP);
    return [
      upright(width, most, y, left, small ? 3 : 5),
      days(width, height, from, to, x),
      changes.map((at) => s("line", { class: "change", x1: x(at), x2: x(at), y1: TOP, y2: height - BOTTOM })),
      budget && budget <= most ? across(width, y(budget), left) : null,
      found.map((line) => [
        s("path", { class: `line ${line.kind}`, d: path(line.values.map((value, place) => (value === null ? null : [x(times[place]), y(value)]))) }),
        line.values.map((value, place) => (value === null ? null : s("circle", { class: `dot ${line.kind}`, cx: x(times[place]), cy: y(value), r: small ? 1.5 : 2.5 }, s("title", {}, `${day(new Date(times[place]).toISOString())} ${line.name} ${ms(value)} ms`)))),
      ]),
    ];
  });
}

/** Counts in steps from 0, the last one open: `counts` of kind to numbers, one upon the other. */
export function histogram(label, height, { step: width_ms, counts, budget }) {
  const kinds = Object.keys(counts);
  const bins = counts[kinds[0]].length;
  const range = (bin) => (bin === bins - 1 ? `≥ ${ms(bin * width_ms)}` : `${ms(bin * width_ms)}–${ms((bin + 1) * width_ms)}`);
  const rows = [...Array(bins).keys()].map((bin) => [range(bin), ...kinds.map((kind) => String(counts[kind][bin]))]);
  return plot(label, height, { head: ["ms", ...kinds.map((kind) => t(`panel_population_${kind}`))], rows }, (width) => {
    const sums = [...Array(bins)].map((_, bin) => kinds.reduce((sum, kind) => sum + counts[kind][bin], 0));
    const most = 1.05 * Math.max(1, ...sums);
    const wide = (width - LEFT - RIGHT) / bins;
    const y = (value) => height - BOTTOM - (value / most) * (height - BOTTOM - TOP);
    const every = Math.ceil(70 / wide);
    const drawn = [];
    for (let bin = 0; bin < bins; bin++) {
      let base = 0;
      for (const kind of kinds) {
        const count = counts[kind][bin];
        if (!count) continue;
        drawn.push(s("rect", { class: `bin ${kind}`, x: LEFT + bin * wide + 0.5, width: Math.max(1, wide - 1), y: y(base + count), height: y(base) - y(base + count) }, s("title", {}, `${range(bin)} ms: ${count} (${t(`panel_population_${kind}`)})`)));
        base += count;
      }
      if (bin % every === 0) drawn.push(s("text", { class: "tick", x: LEFT + bin * wide, y: height - 6, "text-anchor": "middle" }, bin === bins - 1 ? `${ms(bin * width_ms)}+` : ms(bin * width_ms)));
    }
    const at = budget / width_ms;
    return [
      upright(width, most, y, LEFT, 4),
      drawn,
      at < bins ? s("line", { class: "budget", x1: LEFT + at * wide, x2: LEFT + at * wide, y1: TOP, y2: height - BOTTOM }) : null,
    ];
  });
}

function upright(width, most, y, left, count) {
  const every = [1, 2, 5, 10, 20, 50, 100, 200, 250, 500, 1000, 2000, 5000, 10000, 20000, 50000].find((one) => most / one <= count) ?? step(most);
  const made = [];
  for (let value = 0; value <= most; value += every) {
    made.push(s("line", { class: "grid", x1: left, x2: width - RIGHT, y1: y(value), y2: y(value) }));
    made.push(s("text", { class: "tick", x: left - 6, y: y(value) + 4, "text-anchor": "end" }, ms(value)));
  }
  return made;
}

const across = (width, y, left) => s("line", { class: "budget", x1: left, x2: width - RIGHT, y1: y, y2: y });

function days(width, height, from, to, x) {
  const count = Math.max(1, Math.min(6, Math.floor((width - LEFT) / 110)));
  const short = to - from < 3 * 86400e3;
  return [...Array(count + 1)].map((_, place) => {
    const at = from + ((to - from) * place) / count;
    const anchor = place === 0 ? "start" : place === count ? "end" : "middle";
    const text = short ? new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(to - from < 900e3 ? { second: "2-digit" } : {}) }) : day(new Date(at).toISOString(), false);
    return s("text", { class: "tick", x: x(at), y: height - 6, "text-anchor": anchor }, text);
  });
}

/** A line that goes on over stretches in which nobody spoke. */
function path(points) {
  const known = points.filter((point) => point !== null);
  return known.map(([x, y], place) => `${place ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
}
