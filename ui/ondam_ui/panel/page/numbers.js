// What turns came to: over time, spread out, and what should be looked at.

import { get } from "./api.js";
import { histogram, lines } from "./charts.js";
import { fill, h, refill } from "./dom.js";
import { day, ms, number, t } from "./texts.js";
import { STAGES } from "./waterfall.js";
import { busy, card, choice, faults, offer, refusal, table } from "./words.js";

const KINDS = ["settled", "after_idle", "cold"];
const WINDOWS = ["24h", "7d", "30d", ""];
const AGAIN_MS = 15_000;
const JUDGED = "1000";

export function numbers(root) {
  const asked = { since: "7d", plan: "", kind: null };
  let known = null;
  let waiting = null;
  let spoken = 0;
  const period = choice(t("panel_period"), WINDOWS.map((one) => [one, t(`panel_period_${one || "all"}`)]), asked.since, (value) => { asked.since = value; load(); });
  const kinds = choice(t("panel_population"), KINDS.map((one) => [one, t(`panel_population_${one}`)]), "settled", (value) => { asked.kind = value; if (known) draw(); });
  const plans = choice(t("panel_conditions"), [], "", (value) => { asked.plan = value; load(); judge(); });
  plans.hidden = true;
  // They may take a second or two: what is waited for is said meanwhile.
  const body = h("div", { "aria-busy": "true" }, busy(t("panel_computing")));
  const judged = h("div", {}, busy(t("panel_computing")));
  fill(root, h("div", { class: "bar-of-fields" }, period, kinds, plans), body, card(t("panel_findings"), judged));

  async function load() {
    clearTimeout(waiting);
    waiting = null;
    try {
      known = await get("series", Object.entries({ since: asked.since, plan: asked.plan }).filter(([, value]) => value));
    } catch (error) {
      body.removeAttribute("aria-busy");
      fill(body, refusal(error));
      return;
    }
    draw();
  }

  async function judge() {
    try {
      const report = await get("report", Object.entries({ plan: asked.plan, most: JUDGED }).filter(([, value]) => value));
      const found = report.groups[0]?.findings ?? [];
      fill(judged, found.length ? faults(found) : h("p", {}, t("panel_no_findings")));
    } catch (error) {
      fill(judged, refusal(error));
    }
  }

  function draw() {
    body.removeAttribute("aria-busy");
    // The settled ones count; while there are none, those that there are.
    asked.kind ??= KINDS.find((kind) => known.populations[kind].answered) ?? "settled";
    offer(kinds, KINDS.map((one) => [one, `${t(`panel_population_${one}`)} (${known.populations[one].turns})`]), asked.kind);
    offer(plans, known.conditions.map((one) => [one.name ?? "", `${(one.name ?? "–").slice(0, 8)} · ${day(one.newest)} · ${one.turns}`]), asked.plan || (known.chosen ?? ""));
    plans.hidden = known.conditions.length < 2;
    if (!known.turns) {
      fill(body, h("section", { class: "card" }, h("h2", { class: "hidden" }, t("panel_page_numbers")), h("p", {}, t("cli_no_turns"))));
      return;
    }
    const whole = known.populations[asked.kind];
    const first = whole.first_audio_ms;
    refill(
      body,
      card(
        t("panel_first_audio_over_time"),
        h("p", { class: "figures" },
          figure("p50", first.p50), figure("p95", first.p95), figure("p99", first.p99),
          h("span", {}, t("panel_count_of_turns", { count: first.n })),
          h("span", { class: first.over_budget ? "badge over" : "badge" }, t("panel_over_budget_count", { over: first.over_budget, budget: known.budget_ms }))
        ),
        over(asked.kind, "first_audio_ms", 220, known.budget_ms),
        key()
      ),
      card(t("panel_stages_over_time"), h("div", { class: "small-plots" }, STAGES.map((stage) =>
        h("div", { class: `small stage-of-${stage}` }, h("h3", {}, h("i", { class: `key stage-${stage}` }), t(`stage_${stage}`), h("span", {}, `p50 ${ms(whole.stages_ms[stage].p50)} · p95 ${ms(whole.stages_ms[stage].p95)} ms`)), over(asked.kind, stage, 110))
      ))),
      card(
        t("panel_spread"),
        h("ul", { class: "legend" }, KINDS.filter((kind) => known.populations[kind].turns).map((kind) => h("li", {}, h("i", { class: `key ${kind}` }), `${t(`panel_population_${kind}`)} (${known.populations[kind].first_audio_ms.n})`)), budgetKey()),
        histogram(t("panel_spread"), 200, { step: known.histogram.step_ms, counts: Object.fromEntries(KINDS.filter((kind) => known.populations[kind].turns).map((kind) => [kind, known.histogram.counts[kind]]).concat(KINDS.some((kind) => known.populations[kind].turns) ? [] : [["settled", [0]]])), budget: known.budget_ms })
      ),
      card(t("panel_percentiles"), table(t("panel_percentiles"), ["ms", "n", "p50", "p90", "p95", "p99", t("panel_over")], [
        line(t("stage_first_audio"), first), ...STAGES.map((stage) => line(t(`stage_${stage}`), whole.stages_ms[stage])), line(t("cli_column_answer"), whole.answer_ms),
      ]), h("p", { class: "hint" }, t("panel_percentiles_of", { conditions: known.chosen ?? "–" }), known.drifting ? ` ${t("panel_drifting", { count: known.drifting })}` : "", known.more ? ` ${t("panel_more_turns")}` : "", known.skipped ? ` ${t("panel_skipped", { count: known.skipped })}` : ""))
    );
  }

  function over(kind, what, height, budget = null) {
    const of = (bucket, percentile) => {
      const found = bucket.populations[kind];
      return (what === "first_audio_ms" ? found?.[what] : found?.stages_ms[what])?.[percentile] ?? null;
    };
    const small = what !== "first_audio_ms";
    const changes = known.buckets.filter((bucket, place) => place && bucket.conditions !== known.buckets[place - 1].conditions).map((bucket) => Date.parse(bucket.at));
    // Each at the middle of its stretch of time.
    const half = 500 * known.bucket_s;
    return lines(small ? t(`stage_${what}`) : t("panel_first_audio_over_time"), height, {
      from: Math.min(Date.parse(known.since), ...known.buckets.map((bucket) => Date.parse(bucket.at))),
      to: Math.max(Date.parse(known.until), ...known.buckets.map((bucket) => Date.parse(bucket.at) + 2 * half)),
      times: known.buckets.map((bucket) => Date.parse(bucket.at) + half),
      lines: ["p95", "p50"].map((name) => ({ name, kind: `${name}${small ? ` stage-${what}` : ""}`, values: known.buckets.map((bucket) => of(bucket, name)) })),
      budget, changes, small,
    });
  }

  // One after the other: a report is a process of its own as well, and the plots are what is looked at first.
  load().then(judge);
  // What the daemon answers may be some seconds old: until the last turn is in it, it is asked again.
  const timer = setInterval(() => !waiting && !document.hidden && known && (known.behind || Date.parse(known.until) < spoken) && load(), AGAIN_MS);
  return {
    update(types) {
      if (!types.has("turn")) return;
      spoken = Date.now() + 1000;
      waiting ??= setTimeout(load, 1500);
    },
    leave() {
      clearTimeout(waiting);
      clearInterval(timer);
    },
  };
}

const figure = (name, value) => h("span", {}, h("strong", { class: "big" }, ms(value)), ` ms ${name}`);

const line = (label, found) => [label, String(found.n), ...["p50", "p90", "p95", "p99"].map((name) => number(found[name], 0)), found.over_budget === undefined ? "" : String(found.over_budget)];

const budgetKey = () => h("li", {}, h("i", { class: "key budget" }), t("panel_budget_line"));

const key = () => h("ul", { class: "legend" }, h("li", {}, h("i", { class: "key p50" }), "p50"), h("li", {}, h("i", { class: "key p95" }), "p95"), budgetKey(), h("li", {}, h("i", { class: "key change" }), t("panel_change_line")));
