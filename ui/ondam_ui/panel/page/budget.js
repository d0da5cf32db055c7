// The calculator of the seven stages. It reckons nothing: every figure is the daemon's, asked for anew.

import { get } from "./api.js";
import { fill, h, put } from "./dom.js";
import { ms, t } from "./texts.js";
import { STAGES, step } from "./waterfall.js";
import { card, choice, refusal, table } from "./words.js";

const PRESETS = {
  "this-machine": "budget_preset_this_machine",
  "embedded-cpu": "budget_preset_embedded_cpu",
  h100: "budget_preset_h_one_hundred",
  h200: "budget_preset_h_two_hundred",
  laptop: "budget_preset_laptop",
  "managed-apis": "budget_preset_managed_apis",
  "process-per-utterance": "budget_preset_process_per_utterance",
};
const SLOWEST_ASKING_MS = 60;

export function budget(root) {
  const asked = { preset: "", against: "", set: {}, drafts: null, streaming: null, target: null, load: null };
  let waiting = null;
  let number = 0;
  const names = new Map();
  const problem = h("div", {});
  const total = h("p", { class: "figures", role: "status" });
  const bars = h("div", {});
  const notes = h("div", {});
  const remedies = h("div", {});
  const beside = h("div", {});
  const sources = h("div", {});
  const rows = new Map(STAGES.map((stage) => [stage, slider(stage)]));
  const drafts = h("input", { type: "checkbox", onchange: () => { asked.drafts = drafts.checked; soon(); } });
  const streaming = h("input", { type: "checkbox", onchange: () => { asked.streaming = streaming.checked; soon(); } });
  const target = h("input", { type: "number", min: "1", max: "600000", step: "10", inputmode: "numeric", onchange: () => { asked.target = target.value || null; soon(); } });
  const people = h("input", { type: "number", min: "1", max: "1000", step: "1", inputmode: "numeric", placeholder: "1", onchange: () => { asked.load = people.value || null; soon(); } });
  const preset = choice(t("panel_preset"), presets(t("panel_preset_own")), "", (value) => { clear(); asked.preset = value; soon(); }, { id: "preset" });
  const against = choice(t("panel_against"), presets(t("panel_against_none")), "", (value) => { asked.against = value; soon(); }, { id: "against" });
  const own = h("button", { type: "button", class: "main", id: "own", onclick: () => { clear(); asked.preset = "this-machine"; preset.querySelector("select").value = "this-machine"; soon(); } }, t("panel_fill_own"));
  const reset = h("button", { type: "button", onclick: () => { clear(); soon(); } }, t("panel_reset"));

  fill(
    root,
    h("div", { class: "bar-of-fields" }, preset, against, own, reset),
    problem,
    h("div", { class: "pair" },
      card(t("panel_stages"), h("div", { class: "sliders" }, [...rows.values()].map((row) => row.root)),
        h("div", { class: "switches" }, h("label", {}, drafts, t("panel_drafts")), h("label", {}, streaming, t("panel_streaming")), h("label", { class: "field" }, h("span", {}, t("panel_target")), target), h("label", { class: "field" }, h("span", {}, t("panel_speakers")), people))),
      card(t("panel_result"), notes, total, bars, h("h3", {}, t("budget_remedies")), remedies)
    ),
    beside,
    sources
  );

  function presets(first) {
    return [["", first], ...Object.entries(PRESETS).map(([name, code]) => [name, t(code)])];
  }

  function clear() {
    asked.set = {};
    asked.drafts = asked.streaming = null;
  }

  function slider(stage) {
    const id = `stage-${stage}`;
    const range = h("input", { type: "range", id, min: "0", max: "1000", step: "1" });
    const exact = h("input", { type: "number", min: "0", max: "600000", step: "1", inputmode: "numeric", "aria-label": `${t(`stage_${stage}`)}, ms` });
    const usual = h("span", { class: "hint" });
    const given = (value) => { asked.set[stage] = value; soon(); };
    range.addEventListener("input", () => { exact.value = range.value; given(range.value); });
    exact.addEventListener("change", () => exact.value !== "" && given(exact.value));
    return {
      root: h("div", { class: "slider" }, h("label", { for: id }, h("i", { class: `key stage-${stage}` }), t(`stage_${stage}`)), range, exact, usual),
      show(told) {
        const most = Math.max(500, 2 * told.usual_ms.high, Number(range.max) >= told.ms ? 0 : 1.25 * told.ms);
        if (document.activeElement !== range) range.max = String(Math.ceil(Math.max(most, told.ms) / 100) * 100);
        const value = asked.set[stage] ?? told.ms;
        if (document.activeElement !== range) range.value = String(value);
        if (document.activeElement !== exact) exact.value = String(Math.round(value));
        range.setAttribute("aria-valuetext", `${Math.round(told.ms)} ms`);
        put(usual, t("panel_usual", { low: told.usual_ms.low, high: told.usual_ms.high }));
        usual.classList.toggle("over", told.over_usual);
      },
    };
  }

  function soon() {
    clearTimeout(waiting);
    waiting = setTimeout(load, SLOWEST_ASKING_MS);
  }

  function query() {
    const found = [];
    for (const name of ["preset", "against", "target", "load"]) if (asked[name]) found.push([name, asked[name]]);
    for (const name of ["drafts", "streaming"]) if (asked[name] !== null) found.push([name, asked[name] ? "1" : "0"]);
    for (const [stage, value] of Object.entries(asked.set)) found.push(["set", `${stage}=${value}`]);
    return found;
  }

  async function load() {
    const mine = ++number;
    let told;
    try {
      told = await get("budget", query());
    } catch (error) {
      if (mine === number) problem.replaceChildren(refusal(error));
      return;
    }
    if (mine !== number) return;
    problem.replaceChildren();
    root.dataset.total = String(told.total_ms);
    draw(told);
  }

  function draw(told) {
    for (const one of told.stages) rows.get(one.stage).show(one);
    // What was touched meanwhile stays as it was left: its answer is on the way.
    drafts.checked = asked.drafts ?? told.overlap.drafts;
    streaming.checked = asked.streaming ?? told.overlap.streaming;
    if (document.activeElement !== target) target.value = String(asked.target ?? told.target_ms);
    fill(notes, told.notes.map((note) => h("p", { class: "note" }, note.text, " ", h("span", { class: "next" }, note.next))));
    fill(total, verdict(told));
    const most = 1.04 * Math.max(told.target_ms, told.total_ms, told.zones.conversational_ms, told.against?.total_ms ?? 0);
    fill(bars, timeline(told, most), told.against ? [h("h3", {}, told.against.title), h("p", { class: "figures" }, verdict(told.against)), timeline(told.against, most)] : null,
      h("p", { class: "hint" }, told.overlap.assumption), told.load ? h("p", { class: "note" }, told.load.text) : null,
      h("p", {}, t("budget_bottleneck", { stage: t(`stage_${told.bottleneck}`) })));
    fill(remedies, told.remedies.length
      ? h("ul", { class: "faults" }, told.remedies.map((one) => h("li", { class: "info" }, h("p", {}, t("budget_gain", { gain: one.gain_ms, stage: t(`stage_${one.stage}`), text: one.text })), h("p", { class: "next" }, one.next))))
      : h("p", {}, t("panel_no_remedies")));
    fill(beside, told.against ? card(t("panel_beside"), compared(told)) : null);
    fill(sources, card(t("panel_sources"), table(t("panel_sources"), [t("panel_stage"), "ms", t("budget_column_waited"), t("budget_column_source")], told.stages.map((one) => [t(`stage_${one.stage}`), ms(one.ms), ms(one.waited_ms), one.source]))));
  }

  load();
  return { leave: () => clearTimeout(waiting) };
}

const verdict = (told) => [
  h("strong", { class: told.over_target ? "big over" : "big" }, `${ms(told.total_ms)} ms`),
  h("span", {}, t("stage_first_audio")),
  h("span", { class: told.over_target ? "badge over" : "badge" }, t(told.over_target ? "panel_over_target" : "panel_within_target", { target: told.target_ms })),
  h("span", { class: "badge" }, t(`budget_zone_${told.zone}`)),
];

function timeline(told, most) {
  const percent = (value) => `${((100 * Math.min(most, Math.max(0, value))) / most).toFixed(2)}%`;
  return h(
    "ol",
    { class: "waterfall budgeted", "aria-label": told.stages.map((one) => `${t(`stage_${one.stage}`)} ${ms(one.ms)} ms`).join(", ") },
    told.stages.map((one) => {
      const track = h("span", { class: "track" });
      const part = (from, to, kind) => {
        if (to <= from) return;
        const made = h("i", { class: `bar stage-${one.stage} ${kind}` });
        made.style.left = percent(from);
        made.style.width = percent(to - from);
        track.append(made);
      };
      part(one.begins_ms, one.ends_ms, "hides");
      part(one.cumulative_ms - one.waited_ms, one.cumulative_ms, "");
      const goal = h("i", { class: "mark budget" });
      goal.style.left = percent(told.target_ms);
      track.append(goal);
      return h("li", {}, h("span", { class: "label" }, t(`stage_${one.stage}`)), track, h("span", { class: "ms" }, ms(one.ms)));
    }),
    axis(most, percent)
  );
}

function axis(most, percent) {
  const ticks = h("span", { class: "track ticks" });
  for (let tick = 0, every = step(most); tick <= most; tick += every) {
    const made = h("b", {}, ms(tick));
    made.style.left = percent(tick);
    ticks.append(made);
  }
  return h("li", { class: "axis", "aria-hidden": "true" }, h("span", { class: "label" }), ticks, h("span", { class: "ms" }, "ms"));
}

function compared(told) {
  const signed = (value) => (value > 0 ? `+${ms(value)}` : ms(value));
  return table(t("panel_beside"), ["ms", told.title, told.against.title, "B − A"], [
    ...told.stages.map((one, place) => [t(`stage_${one.stage}`), ms(one.ms), ms(told.against.stages[place].ms), signed(told.difference.stages[place].ms)]),
    [t("stage_first_audio"), ms(told.total_ms), ms(told.against.total_ms), signed(told.difference.total_ms)],
  ]);
}
