// What is safe to change while it runs; the daemon's own schema says what is there and what is allowed.

import { get, post } from "./api.js";
import { fill, h, refill } from "./dom.js";
import { language, t } from "./texts.js";
import { busy, card, choice, refusal } from "./words.js";

const DEFAULT = "";

// They have a part of their own, which also says what is plugged in.
const DEVICES = ["audio.microphone", "audio.speaker"];

export function settings(root) {
  const keep = h("input", { type: "checkbox", id: "keep" });
  const devices = h("div", {}, busy());
  const list = h("div", {}, busy());
  const told = h("div", {});
  const status = h("p", { class: "hint", role: "status" });
  fill(
    root,
    h("div", { class: "bar-of-fields" }, h("label", { class: "switch" }, keep, t("panel_keep")), status),
    told,
    card(t("panel_devices"), devices),
    card(t("panel_settings"), list),
    card(t("panel_diagnostics"), h("p", {}, t("panel_diagnostics_told")), h("p", {}, h("a", { class: "button", href: `api/diagnostics?language=${language}`, download: "", onclick: exported }, t("panel_diagnostics_save"))))
  );

  async function change(act, again) {
    told.replaceChildren();
    status.textContent = t("panel_changing");
    try {
      again(await act());
      status.textContent = t(keep.checked ? "panel_changed_kept" : "panel_changed");
    } catch (error) {
      status.textContent = "";
      told.replaceChildren(refusal(error));
      load();
    }
  }

  function shownDevices(found) {
    refill(devices, Object.entries({ microphone: found.microphones, speaker: found.speakers }).map(([which, choices]) => {
      const chosen = choices.find((one) => one.chosen)?.name ?? DEFAULT;
      const options = choices.map((one) => [one.name, one.label + (one.default ? ` (${t("panel_system_default")})` : "") + (one.present === false && one.name !== "none" ? ` (${t("cli_device_missing")})` : "")]);
      return choice(t(`cli_${which}`), [[DEFAULT, t("panel_default_device")], ...options], chosen, (value) =>
        change(() => post("devices", { [which]: value === DEFAULT ? null : value, keep: keep.checked }), shownDevices), { "data-key": which });
    }));
  }

  function shownSettings(found) {
    refill(list, found.settings.filter((one) => !DEVICES.includes(one.key)).map((one) => field(one)));
  }

  function set(key, value) {
    change(() => post("settings", { set: { [key]: value }, keep: keep.checked }), (found) => {
      shownSettings(found);
    });
  }

  function field(one) {
    const id = `setting-${one.key}`;
    const about = h("span", { class: "hint", id: `${id}-help` }, one.help, one.kept === false ? h("span", { class: "badge" }, t("panel_until_restart")) : null);
    const shared = { id, "data-key": one.key, "aria-describedby": `${id}-help` };
    let input;
    if (one.kind === "switch") {
      input = h("input", { type: "checkbox", ...shared, onchange: () => set(one.key, input.checked) });
      input.checked = Boolean(one.value);
      return h("div", { class: "setting" }, h("label", { class: "switch" }, input, one.label), about);
    }
    if (one.kind === "choice") {
      const options = one.choices.map((choice_) => (typeof choice_ === "object" && choice_ !== null ? choice_ : { value: choice_, label: String(choice_) }));
      input = h("select", { ...shared, onchange: () => set(one.key, options[input.selectedIndex].value) }, options.map((option) => h("option", { selected: option.value === one.value }, option.label)));
    } else if (one.kind === "number") {
      const fine = one.whole ? "1" : "any";
      input = h("input", { type: "number", ...shared, min: String(one.least ?? ""), max: String(one.most ?? ""), step: fine, value: String(one.value), onchange: () => input.value !== "" && set(one.key, Number(input.value)) });
    } else {
      input = h("input", { type: "text", ...shared, value: Array.isArray(one.value) ? one.value.join(", ") : String(one.value ?? ""), onchange: () => set(one.key, Array.isArray(one.value) ? input.value.split(",").map((part) => part.trim()).filter(Boolean) : input.value) });
    }
    return h("div", { class: "setting" }, h("label", { class: "field", for: id }, h("span", {}, one.label), input), about);
  }

  async function exported(event) {
    event.preventDefault();
    // As a link alone it would lead to a page of JSON where it is refused.
    try {
      const answer = await get("diagnostics");
      const url = URL.createObjectURL(new Blob([JSON.stringify(answer, null, 1)], { type: "application/json" }));
      const link = h("a", { href: url, download: `ondam-diagnostics-${answer.made_at.slice(0, 10)}.json` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
      told.replaceChildren();
    } catch (error) {
      told.replaceChildren(refusal(error));
    }
  }

  async function loadDevices() {
    try {
      shownDevices(await get("devices"));
    } catch (error) {
      fill(devices, refusal(error));
    }
  }

  async function load() {
    loadDevices();
    try {
      shownSettings(await get("settings"));
    } catch (error) {
      fill(list, refusal(error));
    }
  }

  load();
  const anew = ["snapshot", "mode", "settings"];
  return { update: (types) => anew.some((type) => types.has(type)) && !root.contains(document.activeElement) && load() };
}
