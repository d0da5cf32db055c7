// What it does at this moment: can it hear, what was said, where is the answer.

import { post } from "./api.js";
import { fill, h, put } from "./dom.js";
import { now } from "./live.js";
import { clock, ms, named, t } from "./texts.js";
import { drafts, explained, waterfall } from "./waterfall.js";
import { card, does, faults } from "./words.js";

const QUIETEST_DB = -70;
const SILENT_DB = -85;
const DEAF_MS = 5000; // shorter ones are made by headsets that suppress noise
const DRAWN_MS = 60;
const NOT_RUNNING = ["daemon_not_running", "daemon_gone"];
const LOOKS_MS = 1000; // at levels that stay as they are, of which no event tells

export function present(root) {
  const told = h("div", {});
  const state = h("p", { class: "state", role: "status" });
  const talk = does("", async () => put(talk, t((await post("toggle")).pressed ? "panel_talk_end" : "panel_talk")), told, { class: "main" });
  const mute = does("", () => post("mode", { mode: now.status?.mode === "muted" ? "unmuted" : "muted" }), told);
  const stop = does(t("panel_stop"), () => post("stop"), told);
  const microphone = meter("microphone");
  const speaker = meter("speaker");
  const heard = h("p", { class: "said you" });
  const answered = h("p", { class: "said ondam" });
  const log = h("ol", { class: "exchanges", role: "log", "aria-label": t("panel_conversation") });
  const running = h("div", { class: "running" });
  const title = h("h2", {});
  const wrong = h("section", { class: "card wrong", hidden: true });
  put(talk, t("panel_talk"));

  fill(
    root,
    h("section", { class: "card hero" }, h("h2", { class: "hidden" }, t("panel_state")), h("div", { class: "lamp", "aria-hidden": "true" }), state, h("div", { class: "buttons" }, talk, stop, mute), told),
    wrong,
    h("div", { class: "pair" },
      card(t("panel_levels"), microphone.root, speaker.root),
      card(t("panel_conversation"), log, h("div", { class: "live" }, heard, answered), h("p", { class: "hint" }, t("panel_not_stored")))
    ),
    h("section", { class: "card" }, title, running)
  );

  let drawn = null;
  let faultsTold = "";
  let logged = null;

  function draw() {
    drawn = null;
    const turn = now.running;
    const budget = budgetOf(now.status);
    if (turn && Object.keys(turn.marks).length) {
      const at = turn.voiced === null ? null : performance.now() - turn.voiced;
      const known = Object.fromEntries(Object.entries(turn.marks).filter(([, value]) => value !== null));
      put(title, t("panel_turn_running"));
      const going = turn.marks.dac_first_sample === undefined;
      fill(
        running,
        drafts({ made: turn.dropped + (turn.draft === null ? 0 : 1), dropped: turn.dropped }) ?? "",
        waterfall({ marks_ms: known, first_audio_ms: known.dac_first_sample ?? null }, { budget, at: going ? at : null }),
        explained()
      );
      running.dataset.turn = "running";
      if (going && at !== null) drawn = setTimeout(draw, DRAWN_MS);
      return;
    }
    const last = now.status?.last_turn;
    put(title, t("panel_turn_last"));
    running.dataset.turn = last ? `${last.session}/${last.id}` : "";
    fill(running, last ? summary(last, budget) : h("p", {}, t("cli_no_turns")));
  }

  function meters() {
    microphone.show(now.status?.microphone, now.levels?.microphone_db);
    speaker.show(now.status?.speaker, now.levels?.speaker_db);
  }

  const looking = setInterval(() => document.hidden || meters(), LOOKS_MS);
  return {
    update(types) {
      const { status } = now;
      meters();
      if (types.size === 1 && types.has("levels")) return;
      put(state, doing(status));
      if (!status) return;
      if (types.has("state") && status.state !== "hearing") put(talk, t("panel_talk"));
      root.dataset.state = lamp(status);
      put(mute, t(status.mode === "muted" ? "panel_unmute" : "panel_mute"));
      put(heard, now.running?.transcript ?? "");
      put(answered, now.running?.reply ?? "");
      if (logged !== now.exchanges) {
        logged = now.exchanges;
        fill(log, logged.map((one) => h("li", {}, h("time", {}, clock(one.at)), h("p", { class: "said you" }, one.transcript || "…"), h("p", { class: "said ondam" }, one.reply || named("cli_outcome_", one.turn.outcome)))));
      }
      const found = [...new Map([...status.faults, ...status.engines.flatMap((engine) => engine.faults)].map((one) => [one.text, one])).values()];
      const said = JSON.stringify(found);
      if (said !== faultsTold) {
        faultsTold = said;
        wrong.hidden = !found.length;
        fill(wrong, h("h2", {}, t("cli_faults")), faults(found));
      }
      clearTimeout(drawn);
      draw();
    },
    leave() {
      clearTimeout(drawn);
      clearInterval(looking);
    },
  };
}

export const budgetOf = (status) => status?.conditions?.budget_ms ?? null;

/** What it does; without a connection whether it is known to do nothing. */
export function doing(status) {
  if (now.link === "connecting") return t("panel_connecting");
  if (now.link !== "open") return t(NOT_RUNNING.includes(now.error?.code) ? "panel_offline" : "panel_unreachable");
  if (status.state === "listening" && status.mode !== "open") return named("cli_waits_", status.mode);
  return named("cli_state_", status.state);
}

export function lamp(status) {
  if (now.link !== "open") return "offline";
  return status.mode === "muted" && status.state === "listening" ? "muted" : status.state;
}

/** First audio, whether it is over, and its bars. */
export function summary(turn, budget) {
  const over = turn.over_budget ?? (budget && turn.first_audio_ms > budget);
  return [
    h("p", { class: "figures" },
      h("span", { class: over ? "big over" : "big" }, turn.first_audio_ms === null ? "–" : `${ms(turn.first_audio_ms)} ms`),
      h("span", {}, t("stage_first_audio")),
      over ? h("span", { class: "badge over" }, t("panel_over_budget", { budget })) : null,
      turn.population === "settled" ? null : h("span", { class: "badge" }, t(`panel_population_${turn.population}`)),
      drafts(turn.drafts)
    ),
    waterfall(turn, { budget }),
    explained(),
  ];
}

function meter(which) {
  const fill_ = h("i", {});
  const bar = h("div", { class: "level", role: "meter", "aria-label": t(`cli_${which}`), "aria-valuemin": String(QUIETEST_DB), "aria-valuemax": "0" }, fill_);
  const text = h("span", { class: "db" });
  const name = h("span", { class: "device" });
  const hint = h("p", { class: "hint" });
  let since = null;
  const root = h("div", { class: "meter" }, h("p", {}, h("strong", {}, t(`cli_${which}`)), name, text), bar, hint);
  return {
    root,
    show(device, db) {
      if (!device) return;
      put(name, `${device.name} (${named("cli_device_", device.state)})`);
      const known = db !== null && db !== undefined;
      const silent = known && db <= SILENT_DB;
      put(text, !known ? "" : silent ? t("panel_silence") : `${Math.round(db)} dB`);
      const share = known ? Math.min(1, Math.max(0, 1 - db / QUIETEST_DB)) : 0;
      fill_.style.width = `${(100 * share).toFixed(1)}%`;
      bar.setAttribute("aria-valuenow", String(known ? Math.round(Math.max(db, QUIETEST_DB)) : QUIETEST_DB));
      bar.setAttribute("aria-valuetext", !known || silent ? t("panel_silence") : `${Math.round(db)} dB`);
      const nothing = which === "microphone" && device.state === "ok" && now.levels !== null && (silent || !known);
      since = nothing ? (since ?? performance.now()) : null;
      const deaf = since !== null && performance.now() - since > DEAF_MS;
      put(hint, deaf ? t("panel_deaf") : "");
      root.classList.toggle("deaf", deaf);
    },
  };
}
