// One turn as bars: which stage ran when, from the user's last voiced sample on.

import { h } from "./dom.js";
import { ms, t } from "./texts.js";

export const STAGES = [
  "endpoint",
  "ipc",
  "stt",
  "llm_first_token",
  "first_clause",
  "tts_first_audio",
  "playback_buffer",
];

// As measure/waterfall.py: a stage, and the marks between which it ran. "ipc" is what lies between the bars.
const SPANS = {
  endpoint: ["last_voiced", "endpoint"],
  stt: ["stt_sent", "stt_final"],
  llm_first_token: ["llm_sent", "llm_first_token"],
  first_clause: ["llm_first_token", "first_clause"],
  tts_first_audio: ["tts_sent", "tts_first_audio"],
  playback_buffer: ["tts_first_audio", "dac_first_sample"],
};

const NICE = [50, 100, 200, 250, 500, 1000, 2000, 5000, 10000, 20000, 60000];

/** So that three to six ticks fit. */
export function step(most) {
  return NICE.find((one) => most / one <= 5) ?? NICE.at(-1);
}

/** Spans of a turn: `{stage, from, to, open}` in ms. `at`: how far the clock is, for what has begun and not ended. */
export function spans(marks, at = null) {
  const known = { last_voiced: 0, ...marks };
  return Object.entries(SPANS).flatMap(([stage, [begin, end]]) => {
    const from = known[begin];
    if (from === null || from === undefined) return [];
    const to = known[end];
    if (to !== null && to !== undefined) return [{ stage, from, to, open: false }];
    const running = at !== null && (stage !== "endpoint" || marks.endpoint === undefined);
    return running ? [{ stage, from, to: Math.max(at, from), open: true }] : [];
  });
}

const percent = (value, most) => `${Math.min(100, Math.max(0, (100 * value) / most)).toFixed(2)}%`;

function piece({ stage, open }, from, to, most, kind = "") {
  const made = h("i", { class: `bar stage-${stage} ${open ? "open" : ""} ${kind}` });
  made.style.left = percent(from, most);
  made.style.width = percent(Math.max(0, to) - Math.max(0, from), most);
  return made;
}

/** Pale as far as it ran while nobody waited yet, because it was not certain that the user had finished. */
function bars(span, most, endpoint) {
  if (span.stage === "endpoint" || endpoint === undefined || span.from >= endpoint) return [piece(span, span.from, span.to, most)];
  if (span.to <= endpoint) return [piece(span, span.from, span.to, most, "hides")];
  return [piece({ ...span, open: false }, span.from, endpoint, most, "hides"), piece(span, endpoint, span.to, most)];
}

/** Of a span, what somebody waited for so far: a finished turn's `stages_ms` say it themselves. */
const waited = ({ stage, from, to }, endpoint) =>
  Math.max(0, to - (stage === "endpoint" ? from : Math.max(from, endpoint ?? from)));

const endpointOf = (marks) => marks.endpoint ?? undefined;

function line(at, most, kind) {
  const made = h("i", { class: `mark ${kind}` });
  made.style.left = percent(at, most);
  return made;
}

/** A whole turn with a line for each stage. `at`: how far the clock is, for a turn that runs. */
export function waterfall(turn, { budget = null, at = null } = {}) {
  const found = spans(turn.marks_ms, at);
  const first = turn.first_audio_ms;
  const most = 1.04 * Math.max(first ?? 0, at ?? 0, budget ?? 0, ...found.map((span) => span.to), 400);
  const rows = STAGES.map((stage) => {
    const span = found.find((one) => one.stage === stage);
    const took = turn.stages_ms?.[stage] ?? (span && !turn.stages_ms ? waited(span, endpointOf(turn.marks_ms)) : null);
    const track = h("span", { class: "track" });
    if (span) track.append(...bars(span, most, endpointOf(turn.marks_ms)));
    if (budget) track.append(line(budget, most, "budget"));
    if (first) track.append(line(first, most, "first"));
    return h(
      "li",
      { class: span || took !== null ? "" : "idle" },
      h("span", { class: "label" }, t(`stage_${stage}`)),
      track,
      h("span", { class: "ms" }, took === null ? "–" : ms(took))
    );
  });
  const ticks = h("span", { class: "track ticks", "aria-hidden": "true" });
  for (let tick = 0, every = step(most); tick <= most; tick += every) {
    const made = h("b", {}, ms(tick));
    made.style.left = percent(tick, most);
    ticks.append(made);
  }
  return h(
    "ol",
    { class: "waterfall", "aria-label": described(turn) },
    rows,
    h("li", { class: "axis", "aria-hidden": "true" }, h("span", { class: "label" }), ticks, h("span", { class: "ms" }, "ms"))
  );
}

/** The same in one line, for a list of turns that share a scale. */
export function strip(turn, most, budget) {
  const made = h("span", { class: "track strip", "aria-hidden": "true" });
  const found = spans(turn.marks_ms);
  for (const [place, stage] of Object.keys(SPANS).entries()) {
    const span = found.find((one) => one.stage === stage);
    if (!span) continue;
    for (const one of bars(span, most, endpointOf(turn.marks_ms))) {
      one.style.top = `${(100 * place) / 6}%`;
      made.append(one);
    }
  }
  if (budget) made.append(line(budget, most, "budget"));
  return made;
}

/** What pale bars and the figures beside them mean. */
export const explained = () => h("p", { class: "hint" }, t("panel_pale"));

/** For who cannot see it. */
export function described(turn) {
  const told = STAGES.filter((stage) => turn.stages_ms?.[stage] != null).map(
    (stage) => `${t(`stage_${stage}`)} ${ms(turn.stages_ms[stage])} ms`
  );
  const first = turn.first_audio_ms == null ? [] : [`${t("stage_first_audio")} ${ms(turn.first_audio_ms)} ms`];
  return [...first, ...told].join(", ") || t("panel_no_stages");
}

/** Answers begun before the endpoint: a filled mark for the one that was kept, a struck one for each dropped. */
export function drafts({ made, dropped }) {
  if (!made) return null;
  const label = t("panel_drafts_of", { made, dropped });
  const marks = [...Array(made)].map((_, place) => h("i", { class: place < dropped ? "draft dropped" : "draft kept" }));
  return h("span", { class: "drafts", title: label }, h("span", { "aria-hidden": "true" }, marks), h("span", {}, label));
}
