// Each engine: how it is, what was asked for and what it got, its log, and a new start.

import { get, post } from "./api.js";
import { fill, h, put, refill } from "./dom.js";
import { ask, now } from "./live.js";
import { duration, named, number, t } from "./texts.js";
import { flat } from "./turns.js";
import { card, does, faults, refusal, table } from "./words.js";

const AGAIN_MS = 5000;

export function engines(root) {
  const cards = new Map();
  const switching = h("div", {});
  const list = h("div", { class: "engines" });
  fill(root, switching, list);

  function update() {
    if (!now.status) return;
    const change = now.status.switch;
    const shown = change && !["done", "failed"].includes(change.state);
    fill(switching, shown ? h("p", { class: "banner" }, t("cli_switching", { wanted: Object.entries(change.wanted).map(([key, value]) => `${key}=${value}`).join(" "), state: named("cli_switch_", change.state) })) : null);
    const names = now.status.engines.map((engine) => engine.name);
    for (const [name, one] of cards) if (!names.includes(name)) { one.root.remove(); cards.delete(name); }
    for (const engine of now.status.engines) {
      if (!cards.has(engine.name)) {
        cards.set(engine.name, about(engine.name));
        list.append(cards.get(engine.name).root);
      }
      cards.get(engine.name).show(engine);
    }
  }

  update();
  // Memory and uptime change without an event.
  const timer = setInterval(() => !document.hidden && now.link === "open" && ask(), AGAIN_MS);
  return { update: (types) => (types.size > 1 || !types.has("levels")) && update(), leave: () => clearInterval(timer) };
}

function about(name) {
  const state = h("span", { class: "badge state" });
  const facts = h("dl", { class: "facts" });
  const wrong = h("div", {});
  const beside = h("div", {});
  const told = h("div", {});
  const log = h("pre", { class: "log", tabindex: "0", hidden: true, "aria-label": t("panel_log_of", { name }) });
  const showLog = does(t("panel_log"), async () => {
    if (!log.hidden) { log.hidden = true; put(showLog, t("panel_log")); return; }
    log.textContent = (await get(`engines/${encodeURIComponent(name)}/log`)).text || t("panel_log_empty");
    log.hidden = false;
    put(showLog, t("panel_log_hide"));
    log.scrollTop = log.scrollHeight;
  }, told);
  const restart = does(t("panel_restart"), async () => {
    if (confirm(t("panel_restart_sure", { name }))) await post(`engines/${encodeURIComponent(name)}/restart`);
  }, told);
  const stage = h("span", { class: "hint" });
  const root = h("section", { class: "card engine" }, h("div", { class: "row" }, h("h2", {}, name), stage, state), facts, wrong, beside, h("div", { class: "buttons" }, restart, showLog), told, log);
  let shown = "";
  return {
    root,
    show(engine) {
      const said = JSON.stringify([engine, now.status.conditions?.engines, now.status.conditions?.options, now.status.conditions?.threads]);
      if (said === shown) return;
      shown = said;
      put(stage, t(`panel_stage_${engine.stage}`) + (engine.spare ? ` · ${t("cli_spare")}` : ""));
      put(state, named("cli_engine_", engine.state));
      state.dataset.state = engine.state;
      restart.disabled = engine.outside;
      showLog.disabled = engine.outside;
      const sessions = providers(engine.report);
      fill(facts, [
        [t("panel_model"), engine.model ?? "–"],
        [t("panel_device"), engine.device ?? "–"],
        ["pid", engine.pid ?? "–"],
        [t("panel_uptime"), engine.uptime_s ? duration(engine.uptime_s) : "–"],
        [t("panel_loads"), engine.loads ?? "–"],
        [t("panel_memory"), engine.rss_mib === null ? "–" : `${number(engine.rss_mib)} MiB`],
        [t("panel_restarts"), engine.restarts],
        [t("panel_fit"), named("panel_fit_", engine.fit)],
        [t("panel_policy"), named("panel_policy_", engine.policy)],
        ...(engine.isolation ? [[t("panel_network"), t(engine.isolation.closed ? "panel_network_closed" : "panel_network_open")]] : []),
        ...sessions.map(([session, provider]) => [t("panel_provider_of", { session }), provider]),
      ].map(([key, value]) => h("div", {}, h("dt", {}, key), h("dd", {}, String(value)))));
      fill(wrong, engine.faults.length ? faults(engine.faults) : null);
      refill(beside, requested(engine));
    },
  };
}

/** Execution provider of each session, in whatever shape an engine reports it. */
function providers(report) {
  const found = report?.providers;
  if (!found) return [];
  if (Array.isArray(found)) return [["", found.join(", ")]];
  if (typeof found !== "object") return [["", String(found)]];
  return Object.entries(found).map(([session, provider]) => [session, Array.isArray(provider) ? provider.join(", ") : String(provider)]);
}

/** What the plan asked for beside what the engine says it got; what differs first. */
function requested(engine) {
  const known = now.status.conditions ?? {};
  const report = engine.report ?? {};
  const differs = Object.values(known.engines ?? {}).find((one) => one.name === engine.name)?.differs ?? [];
  const wanted = { ...(known.options?.[engine.name] ?? {}) };
  if (known.threads?.[engine.name] !== undefined) wanted.threads = known.threads[engine.name];
  const told = new Set(differs.map((one) => one.what));
  const rows = [
    ...differs.map((one) => [one.what, plain(one.wanted), h("strong", { class: "over" }, plain(one.got))]),
    ...Object.entries(wanted).filter(([key]) => !told.has(key)).map(([key, value]) => [key, plain(value), plain(report[key])]),
    ...flat(report).filter(([key]) => !told.has(key) && !(key in wanted)).map(([key, value]) => [key, "", value]),
  ];
  if (!rows.length) return null;
  return h("details", { open: differs.length > 0 }, h("summary", { "data-key": "requested" }, t("panel_requested_obtained")), table(t("panel_requested_obtained"), ["", t("panel_requested"), t("panel_obtained")], rows));
}

const plain = (value) => (value === null || value === undefined ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value));
