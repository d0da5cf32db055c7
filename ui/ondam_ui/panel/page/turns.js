// The last turns, each as its bars on a common scale; one of them closer.

import { get } from "./api.js";
import { fill, h, put, refill } from "./dom.js";
import { now } from "./live.js";
import { budgetOf } from "./now.js";
import { clock, day, ms, named, number, t } from "./texts.js";
import { STAGES, described, drafts, explained, step, strip, waterfall } from "./waterfall.js";
import { busy, choice, refusal, table } from "./words.js";

const AGAIN_MS = 700;

export function turns(root) {
  let limit = "50";
  let known = [];
  let open = null;
  let waiting = null;
  const list = h("ol", { class: "turns" }, h("li", {}, busy()));
  const scale = h("div", { class: "scale", "aria-hidden": "true" });
  const detail = h("section", { class: "card detail", id: "detail", hidden: true });
  const problem = h("div", {});
  fill(
    root,
    h("div", { class: "bar-of-fields" }, choice(t("panel_how_many"), ["20", "50", "100", "200"].map((one) => [one, one]), limit, (value) => { limit = value; load(); }), legend()),
    problem,
    h("div", { class: "split" }, h("div", { class: "card" }, h("h2", { class: "hidden" }, t("cli_turns")), scale, list), detail)
  );

  async function load() {
    clearTimeout(waiting);
    waiting = null;
    try {
      known = (await get("turns", { limit })).turns;
      problem.replaceChildren();
    } catch (error) {
      problem.replaceChildren(refusal(error));
      return;
    }
    draw();
  }

  function draw() {
    const budget = budgetOf(now.status);
    const most = 1.04 * Math.max(400, budget ?? 0, ...known.map((turn) => turn.first_audio_ms ?? 0));
    refill(list, known.length ? known.map((turn) => one(turn, most, budget)) : h("li", { class: "empty" }, t("cli_no_turns")));
    axis(scale, most);
    if (open) look(open, false);
  }

  function one(turn, most, budget) {
    const key = keyOf(turn);
    const words = turn.transcript ? h("span", { class: "words" }, turn.transcript) : null;
    return h(
      "li",
      {},
      h(
        "button",
        { type: "button", class: "turn", "data-key": key, "aria-expanded": String(key === open), "aria-controls": "detail", onclick: () => look(key === open ? null : key, true) },
        h("span", { class: "when" }, when(turn.started_at)),
        strip(turn, most, budget),
        h("span", { class: turn.over_budget ? "ms over" : "ms" }, turn.first_audio_ms === null ? "–" : ms(turn.first_audio_ms), turn.over_budget ? h("span", { class: "hidden" }, `, ${t("panel_over")}`) : null),
        h("span", { class: "about" },
          turn.outcome === "answered" ? null : h("span", { class: "badge" }, named("cli_outcome_", turn.outcome)),
          turn.population === "settled" ? null : h("span", { class: "badge" }, t(`panel_population_${turn.population}`)),
          drafts(turn.drafts),
          words
        ),
        h("span", { class: "hidden" }, described(turn))
      )
    );
  }

  function look(key, moves) {
    open = key;
    for (const button of list.querySelectorAll("[data-key]")) button.setAttribute("aria-expanded", String(button.dataset.key === key));
    const turn = known.find((one) => keyOf(one) === key);
    detail.hidden = !turn;
    root.classList.toggle("looking", Boolean(turn));
    if (!turn) {
      detail.replaceChildren();
      return;
    }
    if (detail.dataset.key !== key || moves) {
      detail.dataset.key = key;
      fill(detail, closer(turn, () => { look(null, false); list.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus(); }));
      if (moves && matchMedia("(max-width: 900px)").matches) detail.scrollIntoView({ block: "start" });
    }
  }

  load();
  return {
    update(types) {
      if (types.has("turn") && !waiting) waiting = setTimeout(load, AGAIN_MS);
      if (types.has("snapshot")) load();
    },
    leave: () => clearTimeout(waiting),
  };
}

const keyOf = (turn) => `${turn.session}/${turn.id}`;

function when(iso) {
  const today = new Date().toDateString() === new Date(iso).toDateString();
  return h("time", { datetime: iso }, today ? clock(iso) : day(iso));
}

function axis(scale, most) {
  const ticks = h("span", { class: "track ticks" });
  for (let tick = 0, every = step(most); tick <= most; tick += every) {
    const made = h("b", {}, ms(tick));
    made.style.left = `${((100 * tick) / most).toFixed(2)}%`;
    ticks.append(made);
  }
  fill(scale, h("span", { class: "when" }), ticks, h("span", { class: "ms" }, "ms"));
}

export function legend() {
  return h("ul", { class: "legend", "aria-label": t("panel_legend") }, STAGES.map((stage) => h("li", {}, h("i", { class: `key stage-${stage}` }), t(`stage_${stage}`))));
}

function closer(turn, close) {
  const facts = h("div", {}, busy());
  conditions(turn, facts);
  const marks = Object.entries(turn.marks_ms).filter(([, at]) => at !== null);
  const { tokens } = turn;
  return [
    h("div", { class: "row" }, h("h2", {}, `${day(turn.started_at, false)} ${clock(turn.started_at)}`), h("button", { type: "button", class: "quiet", onclick: close }, t("panel_close"))),
    turn.transcript ? h("p", { class: "said you" }, turn.transcript) : null,
    turn.reply ? h("p", { class: "said ondam" }, turn.reply) : null,
    turn.fault ? h("p", { class: "refusal" }, named("", turn.fault), turn.cause ? ` (${turn.cause})` : "") : null,
    waterfall(turn, { budget: budgetOf(now.status) }),
    explained(),
    h("p", { class: "figures" }, h("strong", {}, `${t("stage_first_audio")}: ${ms(turn.first_audio_ms)} ms`), h("span", {}, `${t("cli_column_answer")}: ${ms(turn.answer_ms)} ms`), drafts(turn.drafts)),
    table(t("panel_marks"), [t("panel_mark"), "ms"], marks.map(([name, at]) => [t(`panel_mark_${name}`), number(at, 1)])),
    table(t("panel_figures"), [t("panel_figure"), ""], [
      [t("panel_outcome"), named("cli_outcome_", turn.outcome)],
      [t("panel_population"), t(`panel_population_${turn.population}`)],
      [t("panel_utterance"), `${number(turn.utterance_s, 1)} s`],
      [t("panel_answer_length"), `${number(turn.audio.seconds, 1)} s`],
      [t("panel_tokens"), t("panel_tokens_of", { prompt: ms(tokens.prompt), cached: ms(tokens.cached), output: ms(tokens.output) })],
      [t("panel_llm_calls"), String(turn.llm_calls)],
      [t("panel_clauses"), String(turn.clauses)],
      [t("panel_taken_back"), String(turn.taken_back)],
      [t("panel_underruns"), String(turn.underruns)],
      [t("panel_voice"), turn.voice ?? "–"],
      [t("panel_load"), number(turn.load_average_1min, 2)],
      [t("panel_power"), turn.power ? named("panel_power_", turn.power) : "–"],
      ...Object.entries(turn.engine_ms).filter(([, value]) => value !== null).map(([name, value]) => [t(`panel_engine_ms_${name}`), `${number(value, 1)} ms`]),
      ...Object.entries(turn.engines).map(([name, engine]) => [name, `pid ${engine.pid ?? "–"}`]),
    ]),
    h("h3", {}, t("panel_conditions")),
    facts,
  ];
}

/** What the turn was made under: from the daemon where it is so still, else from the journal. */
async function conditions(turn, place) {
  if (!turn.conditions) {
    fill(place, h("p", {}, t("panel_no_conditions")));
    return;
  }
  let facts = null;
  if (now.status?.conditions?.name === turn.conditions) facts = now.status.conditions;
  else {
    try {
      facts = (await get("report", { plan: turn.conditions, most: "1" })).groups[0]?.facts ?? null;
    } catch (error) {
      fill(place, refusal(error));
      return;
    }
  }
  fill(place, facts ? table(t("panel_conditions"), [turn.conditions, ""], flat(facts).map(([key, value]) => [key, value])) : h("p", {}, t("panel_no_conditions")));
}

/** Every fact on a line. */
export function flat(facts, before = "") {
  return Object.entries(facts).flatMap(([key, value]) => {
    if (value === null || value === undefined) return [];
    if (typeof value === "object" && !Array.isArray(value)) return flat(value, `${before}${key}.`);
    return [[before + key, Array.isArray(value) ? value.map((one) => (typeof one === "object" ? JSON.stringify(one) : one)).join(", ") : String(value)]];
  });
}
