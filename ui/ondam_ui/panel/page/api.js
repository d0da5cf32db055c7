// The way to the panel's own server, and through it to the daemon.

import { language, t } from "./texts.js";

/** What the daemon or the panel refused, in words. */
export class Refused extends Error {
  constructor({ code, text, next }) {
    super(text);
    this.code = code;
    this.next = next;
  }
}

async function asked(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { ...options, headers: { "Accept-Language": language, ...options.headers } });
  } catch {
    throw new Refused({ code: "panel_gone", text: t("panel_gone"), next: "ondam panel" });
  }
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(told.error ?? { code: "", text: `HTTP ${answer.status}`, next: "" });
  return told;
}

export const get = (path, query = []) => {
  const asking = new URLSearchParams(query).toString();
  return asked(`api/${path}${asking && `?${asking}`}`);
};

export const post = (path, body = {}) =>
  asked(`api/${path}`, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "Content-Type": "application/json" },
  });

/** The token of the address for a cookie; without a token, whether the cookie is still good. */
export const enter = (token) => asked("session", { method: "POST", body: token });
