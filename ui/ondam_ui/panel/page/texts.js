// Every text is one of ondam.messages, in the reader's language.

const KEPT = "ondam-language";

export let language = "en";
let known = {};

export async function load(wanted) {
  const asked = wanted ?? localStorage.getItem(KEPT) ?? navigator.language;
  language = asked.toLowerCase().startsWith("ko") ? "ko" : "en";
  if (wanted) localStorage.setItem(KEPT, language);
  const answer = await fetch(`texts?language=${language}`);
  known = await answer.json();
  document.documentElement.lang = language;
}

/** The text of a code with its placeholders filled, as Python's str.format does. */
export function t(code, facts = {}) {
  const text = known[code];
  if (text === undefined) return code;
  return text.replace(/\{(\w+)(?::([^{}]*))?\}/g, (whole, name, format) =>
    name in facts ? shown(facts[name], format) : whole
  );
}

/** The text of a code that is put together from parts, or its last part where there is none. */
export function named(prefix, value) {
  return known[prefix + value] ?? String(value);
}

function shown(value, format) {
  if (typeof value !== "number" || !format) return String(value);
  if (format === "02d") return String(value).padStart(2, "0");
  const digits = /\.(\d+)f/.exec(format);
  if (!digits) return String(value);
  const sign = format.startsWith("+") && value >= 0 ? "+" : "";
  return sign + value.toFixed(Number(digits[1]));
}

const LOCALES = { ko: "ko-KR", en: "en-GB" };

/** Whole milliseconds, or a dash. */
export const ms = (value) => (value === null || value === undefined ? "–" : Math.round(value).toLocaleString(LOCALES[language]));

export const number = (value, digits = 0) =>
  value === null || value === undefined
    ? "–"
    : value.toLocaleString(LOCALES[language], { minimumFractionDigits: digits, maximumFractionDigits: digits });

export const clock = (iso) =>
  new Date(iso).toLocaleTimeString(LOCALES[language], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

export const day = (iso, withTime = true) =>
  new Date(iso).toLocaleString(LOCALES[language], {
    month: "short",
    day: "numeric",
    ...(withTime ? { hour: "2-digit", minute: "2-digit", hour12: false } : {}),
  });

export function duration(seconds) {
  const whole = Math.floor(seconds ?? 0);
  if (whole < 60) return t("cli_seconds", { seconds: whole });
  if (whole < 3600) return t("cli_minutes", { minutes: Math.floor(whole / 60) });
  return t("cli_hours", { hours: Math.floor(whole / 3600), minutes: Math.floor((whole % 3600) / 60) });
}
