// Opens the door, loads the texts, and shows one page at a time.

import { enter } from "./api.js";
import { fill, h, put } from "./dom.js";
import { connect, now, watch } from "./live.js";
import { language, load, t } from "./texts.js";
import { budget } from "./budget.js";
import { engines } from "./engines.js";
import { doing, lamp, present } from "./now.js";
import { numbers } from "./numbers.js";
import { settings } from "./settings.js";
import { turns } from "./turns.js";

const PAGES = { now: present, turns, numbers, engines, budget, settings };
const LINK_PATIENCE_MS = 800;

let shown = null;
let page = null;
const parts = {};

async function start() {
  // The token is in no request but this one, and leaves the address before anybody copies it from there.
  const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
  if (token) history.replaceState(null, "", location.pathname);
  await load();
  let let_in = true;
  try {
    await enter(token);
  } catch (refused) {
    let_in = false;
    document.body.replaceChildren(
      h("main", { class: "shut" }, h("h1", {}, "Ondam"), h("p", { role: "alert" }, refused.message), h("p", { class: "next" }, refused.next))
    );
  }
  if (!let_in) return;
  frame();
  watch(heard);
  addEventListener("hashchange", show);
  show();
}

function frame() {
  parts.state = h("span", { class: "chip", id: "state" });
  parts.nav = h("nav", { "aria-label": t("panel_pages") });
  parts.banner = h("div", { class: "banner", role: "alert", hidden: true });
  parts.main = h("main", { id: "main", tabindex: "-1" });
  const other = language === "ko" ? "en" : "ko";
  const spoken = h(
    "button",
    { class: "quiet", id: "language", lang: other, onclick: () => inLanguage(other) },
    other === "ko" ? "한국어" : "English"
  );
  document.body.replaceChildren(
    h("a", { class: "skip", href: "#main", onclick: skipped }, t("panel_skip")),
    h(
      "header",
      {},
      h("div", { class: "top" }, h("strong", { class: "name" }, language === "ko" ? "온담" : "Ondam"), parts.state, spoken),
      parts.nav
    ),
    parts.banner,
    parts.main
  );
}

function skipped(event) {
  event.preventDefault();
  parts.main.focus();
}

async function inLanguage(wanted) {
  await load(wanted);
  page?.leave?.();
  page = null;
  shown = null;
  frame();
  connect();
  show();
  document.getElementById("language").focus();
}

function show() {
  const wanted = location.hash.slice(1).split("/")[0];
  const name = wanted in PAGES ? wanted : "now";
  if (name !== shown) {
    page?.leave?.();
    const first = shown === null;
    shown = name;
    fill(parts.nav, Object.keys(PAGES).map((one) =>
      h("a", { href: `#${one}`, "aria-current": one === name ? "page" : null }, t(`panel_page_${one}`))
    ));
    parts.nav.querySelector("[aria-current]").scrollIntoView({ block: "nearest", inline: "nearest" });
    const title = h("h1", { tabindex: "-1" }, t(`panel_page_${name}`));
    const root = h("div", { class: `page page-${name}` });
    fill(parts.main, title, root);
    document.title = `${t(`panel_page_${name}`)} – ${language === "ko" ? "온담" : "Ondam"}`;
    page = PAGES[name](root) ?? {};
    if (!first) {
      scrollTo(0, 0);
      title.focus({ preventScroll: true });
    }
    connect(name === "now");
  }
  heard(new Set(["shown"]));
  page.go?.(location.hash.split("/")[1] ?? null);
}

function heard(types) {
  const { link, status, error } = now;
  put(parts.state, doing(status));
  parts.state.dataset.state = lamp(status);
  banner(link, error);
  page?.update?.(types);
}

let since = performance.now();

function banner(link, error) {
  if (link === "open") {
    since = performance.now();
    parts.banner.hidden = true;
    parts.banner.replaceChildren();
    return;
  }
  // A reconnection of a moment is nothing to be told of.
  if (link !== "absent" && performance.now() - since < LINK_PATIENCE_MS) {
    setTimeout(() => banner(now.link, now.error), LINK_PATIENCE_MS);
    return;
  }
  const told = link === "absent" ? error : { text: t(link === "closed" ? "panel_gone" : "panel_connecting"), next: link === "closed" ? "ondam panel" : "" };
  const said = [told.text, told.next].join("|");
  if (parts.banner.dataset.said === said && !parts.banner.hidden) return;
  parts.banner.dataset.said = said;
  parts.banner.hidden = false;
  fill(parts.banner, h("p", {}, told.text), told.next ? h("p", { class: "next" }, told.next) : null, link === "absent" ? h("p", {}, t("panel_waiting")) : null);
}

start();
