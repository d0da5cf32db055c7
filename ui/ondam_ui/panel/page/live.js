// What the daemon says as it happens: one WebSocket, one picture of the present, and who wants to see it.

import { get } from "./api.js";
import { language } from "./texts.js";

const AGAIN_MS = 1000;

// What it does while a turn runs; in any other state none does.
const IN_A_TURN = ["hearing", "recognizing", "thinking", "speaking"];

/** `link`: connecting, open, absent (the panel serves, the daemon does not) or closed (the panel has ended). */
export const now = {
  link: "connecting",
  error: null,
  status: null,
  levels: null,
  running: null,
  exchanges: [],
  notice: null,
};

const watchers = new Set();
let socket = null;
let wanted = false;
let drawn = false;
let asking = null;

/** Calls back after changes, at most once a frame, with the types of the events there were. */
export function watch(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

let types = new Set();

function changed(type) {
  types.add(type);
  if (drawn) return;
  drawn = true;
  // Not requestAnimationFrame alone: a page in the background is drawn when it is looked at, but must not fall behind.
  (document.hidden ? (call) => setTimeout(call, 250) : requestAnimationFrame)(() => {
    drawn = false;
    const told = types;
    types = new Set();
    for (const watcher of watchers) watcher(told);
  });
}

/** Levels, marks and the answer as it is spoken cost ten messages a second: only who looks at them gets them. */
export function connect(levels = wanted) {
  wanted = levels;
  const fleeting = levels && !document.hidden;
  if (socket && socket.fleeting === fleeting && socket.readyState <= WebSocket.OPEN && socket.spoken === language) return;
  const before = socket;
  const opened = new WebSocket(`api/events?levels=${fleeting ? 1 : 0}&language=${language}`);
  now.levels = null; // those that were known are of another moment by the time that others come
  opened.fleeting = fleeting;
  opened.spoken = language;
  opened.onmessage = (message) => opened === socket && heard(JSON.parse(message.data));
  opened.onclose = () => {
    if (opened !== socket) return;
    Object.assign(now, { link: "closed", error: null, levels: null, running: null });
    changed("link");
    setTimeout(() => opened === socket && ((socket = null), connect()), AGAIN_MS);
  };
  socket = opened;
  before?.close();
}

document.addEventListener("visibilitychange", () => socket && connect());

// A turn from a WAV has a conversation of its own, and is no voice in the room.
const elsewhere = (event) => now.status !== null && event.session !== undefined && event.session !== now.status.session;

function heard(event) {
  if (["state", "transcript", "notice"].includes(event.type) && elsewhere(event)) return;
  switch (event.type) {
    case "absent":
      Object.assign(now, { link: "absent", error: event.error, levels: null, running: null });
      break;
    case "snapshot":
      Object.assign(now, { link: "open", error: null, status: event.status });
      // Its end may have come while nobody told us.
      if (!IN_A_TURN.includes(event.status.state)) now.running = null;
      if (event.status.faults.length || event.status.engines.some((engine) => engine.faults.length)) ask();
      break;
    case "state":
      now.status.state = event.state;
      if (event.state === "hearing") now.running = begun();
      break;
    case "mode":
      now.status.mode = event.mode;
      ask();
      break;
    case "transcript":
      running().transcript = event.text;
      break;
    case "partial":
      running().reply = event.reply;
      break;
    case "mark":
      marked(event);
      break;
    case "levels":
      now.levels = event;
      break;
    case "turn":
      finished(event.turn, elsewhere(event));
      break;
    case "notice":
      now.notice = event.text ?? event.code;
      break;
    default: // engine, fault, fault_cleared, switch: the texts are wanted in the reader's language
      ask();
  }
  changed(event.type);
}

function begun() {
  return { transcript: "", reply: "", marks: {}, draft: null, dropped: 0, voiced: null };
}

function running() {
  now.running ??= begun();
  return now.running;
}

function marked({ turn: number, draft, name, at_ms }) {
  if (now.running?.turn !== undefined && now.running.turn !== number) now.running = begun();
  const turn = running();
  turn.turn = number;
  if (turn.draft !== draft) {
    // The one before was thrown away, and what it had come to with it; what counts now is told anew.
    if (turn.draft !== null) turn.dropped += 1;
    turn.draft = draft;
    turn.marks = {};
  }
  turn.marks[name] = at_ms;
  // When the user fell silent, by this page's own clock: the running end of the bars is drawn from there.
  if (at_ms !== null) turn.voiced = performance.now() - at_ms;
}

function finished(turn, elsewhere) {
  if (now.status) {
    now.status.last_turn = turn;
    now.status.turns += 1;
  }
  if (elsewhere) return;
  const before = now.running;
  now.running = null;
  const said = { at: turn.started_at, transcript: turn.transcript ?? before?.transcript, reply: turn.reply, turn };
  if (said.transcript || said.reply) now.exchanges = [...now.exchanges, said].slice(-5);
}

/** The status anew, once for many changes. */
export function ask() {
  asking ??= setTimeout(async () => {
    asking = null;
    try {
      now.status = await get("status");
      changed("status");
    } catch {
      // The relay says what is the matter, and a snapshot follows when it is over.
    }
  }, 150);
}
