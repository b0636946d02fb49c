/**
 * Figures, times, statuses and values as people read them. Pure functions of text: nothing here touches the page.
 *
 * Times are integers, microseconds since 1970, as the API sends them. Values are in the API's JSON forms.
 */

const NUMBER = new Intl.NumberFormat("en-GB");
const UNITS = ["B", "KB", "MB", "GB", "TB"];
const SECOND = 1_000_000;
const BARE = /^[A-Za-z0-9_/-]+$/;

/** What each standing of a run looks like: a sign and a tone beside its word, so that colour is never alone. */
const STANDINGS = {
  running: { sign: "●", tone: "accent" },
  waiting: { sign: "?", tone: "warn" },
  paused: { sign: "‖", tone: "warn" },
  interrupted: { sign: "◌", tone: "warn" },
  parked: { sign: "⏏", tone: "bad" },
  failed: { sign: "✖", tone: "bad" },
  completed: { sign: "✔", tone: "good" },
  cancelled: { sign: "⊘", tone: "dim" },
  created: { sign: "○", tone: "dim" },
};

// --- numbers

/** A whole number with separators: 12,345. */
export function number(value) {
  return NUMBER.format(value);
}

/** A number with its noun: 1 snapshot, 1,200 snapshots. */
export function count(value, one, many) {
  return `${NUMBER.format(value)} ${value === 1 ? one : many || one + "s"}`;
}

/** A number in a few characters: 950, 12.3k, 4.5M. */
export function compact(value) {
  if (value < 1000) return String(value);
  if (value < 999_500) return trimmed(value / 1000) + "k";
  return trimmed(value / 1_000_000) + "M";
}

function trimmed(value) {
  return value < 99.95 ? value.toFixed(1).replace(/\.0$/, "") : String(Math.round(value));
}

/** A number of bytes: 1.6 KB. */
export function size(bytes) {
  let amount = bytes;
  let unit = 0;
  while (amount >= 1000 && unit < UNITS.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  if (unit === 0) return `${bytes} B`;
  return `${amount < 100 ? amount.toFixed(1) : amount.toFixed(0)} ${UNITS[unit]}`;
}

/** Money, from millionths: $0.0123. Nothing spent is a dash. */
export function money(micros) {
  if (!micros) return "–";
  const amount = micros / 1_000_000;
  if (amount < 0.0001) return "<$0.0001";
  return "$" + (amount < 1 ? amount.toFixed(4) : amount.toFixed(2));
}

/** A confidence: 0.83; a dash where there is none. */
export function confidence(value) {
  return value === null || value === undefined ? "–" : value.toFixed(2);
}

/** A share: 42 %. */
export function percent(part, whole) {
  return whole ? `${Math.round((100 * part) / whole)} %` : "–";
}

// --- times

/** A length of time: 850 ms, 4.2 s, 3m 20s, 2h 5m, 3d 4h. */
export function duration(micros) {
  if (micros < 1000) return micros > 0 ? "<1 ms" : "0 ms";
  if (micros < SECOND) return `${Math.floor(micros / 1000)} ms`;
  const seconds = Math.floor(micros / SECOND);
  if (seconds < 60) return `${(micros / SECOND).toFixed(1)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${seconds % 60}s`;
  const hours = Math.floor(seconds / 3600);
  if (hours < 24) return `${hours}h ${Math.floor((seconds % 3600) / 60)}m`;
  return `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

/** How long ago, in one figure: 12 s ago. */
export function ago(at, now) {
  const seconds = Math.max(0, Math.floor((now - at) / SECOND));
  if (seconds < 2) return "just now";
  return `${age(seconds)} ago`;
}

function age(seconds) {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  if (seconds < 86_400 * 60) return count(Math.floor(seconds / 86_400), "day");
  return count(Math.floor(seconds / (86_400 * 30)), "month");
}

/** The time of day of this machine, with milliseconds: 14:03:22.118. */
export function clock(at) {
  const when = new Date(at / 1000);
  if (Number.isNaN(when.getTime())) return `${at} µs`;
  return `${two(when.getHours())}:${two(when.getMinutes())}:${two(when.getSeconds())}.${three(when.getMilliseconds())}`;
}

/** The time of day without milliseconds: 14:03:22. */
export function time(at) {
  return clock(at).slice(0, 8);
}

/** The day: 2026-11-15. */
export function day(at) {
  const when = new Date(at / 1000);
  if (Number.isNaN(when.getTime())) return `${at} µs`;
  return `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())}`;
}

/** Day and time of day: 2026-11-15 14:03:22.118. */
export function instant(at) {
  return `${day(at)} ${clock(at)}`;
}

/** The shortest form that still says when, seen from now: the time today, else the day and time. */
export function when(at, now) {
  return day(at) === day(now) ? time(at) : `${day(at)} ${time(at).slice(0, 5)}`;
}

/** Time passed since a beginning: 00:42.1, 1:02:33. */
export function offset(micros) {
  const seconds = Math.floor(micros / SECOND);
  if (seconds < 3600) {
    return `${two(Math.floor(seconds / 60))}:${two(seconds % 60)}.${Math.floor((micros % SECOND) / 100_000)}`;
  }
  return `${Math.floor(seconds / 3600)}:${two(Math.floor((seconds % 3600) / 60))}:${two(seconds % 60)}`;
}

function two(value) {
  return String(value).padStart(2, "0");
}

function three(value) {
  return String(value).padStart(3, "0");
}

// --- words

/** The sign and tone of a standing. */
export function standing(name) {
  return STANDINGS[name] || { sign: "○", tone: "dim" };
}

/** A name of the code as words: error_encountered becomes error encountered. */
export function words(name) {
  return name.replaceAll("_", " ");
}

/** A text cut to that many characters, with … where something is left out. */
export function cut(text, chars) {
  return text.length <= chars ? text : text.slice(0, Math.max(0, chars - 1)).trimEnd() + "…";
}

/** A text on one line. */
export function oneLine(text) {
  return text.replace(/\s*[\r\n]+\s*/g, " ⏎ ");
}

/** A run's id in parts: the workflow's name, and what tells the runs of one workflow apart. */
export function runParts(run) {
  const found = /^(.*?)_(\d{8}_\d{6}_.+)$/.exec(run);
  return found ? { name: found[1], rest: found[2] } : { name: run, rest: "" };
}

// --- paths

/** A path as people write it: tasks.review/1/structure.result[0]["a name"]. */
export function pathText(path) {
  const text = path.map(step).join("");
  return (text.startsWith(".") ? text.slice(1) : text) || ".";
}

function step(each) {
  if (typeof each === "number") return `[${each}]`;
  return BARE.test(each) ? `.${each}` : `[${JSON.stringify(each)}]`;
}

// --- values in the API's forms

/**
 * The one mark of a form such as {"$bytes": …}, or null for ordinary data.
 * @returns {{name: string, content: any} | null}
 */
export function form(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return null;
  const keys = Object.keys(value);
  if (keys.length !== 1 || keys[0][0] !== "$" || keys[0][1] === "$") return null;
  return { name: keys[0], content: value[keys[0]] };
}

/** The key of an object as it really is: one "$" less where it was escaped. */
export function keyText(key) {
  return key.startsWith("$$") ? key.slice(1) : key;
}

/** A value on one line, cut to that many characters. */
export function brief(value, chars = 80) {
  return cut(written(value, chars), chars);
}

function written(value, room) {
  if (value === undefined) return "nothing";
  if (typeof value === "string") return JSON.stringify(value.length > room ? value.slice(0, room) : value);
  if (value === null || typeof value !== "object") return String(value);
  const marked = form(value);
  if (marked) return writtenForm(marked, room);
  return Array.isArray(value) ? `[${items(value, room)}]` : `{${pairs(value, room)}}`;
}

function items(list, room) {
  const out = [];
  for (let i = 0, left = room; i < list.length && left > 0; i += 1) {
    const text = written(list[i], left);
    out.push(text);
    left -= text.length + 2;
  }
  if (out.length < list.length) out.push("…");
  return out.join(", ");
}

function pairs(object, room) {
  const out = [];
  const keys = Object.keys(object);
  for (let i = 0, left = room; i < keys.length && left > 0; i += 1) {
    const text = `${keyText(keys[i])}: ${written(object[keys[i]], left)}`;
    out.push(text);
    left -= text.length + 2;
  }
  if (out.length < keys.length) out.push("…");
  return out.join(", ");
}

function writtenForm({ name, content }, room) {
  switch (name) {
    case "$at":
      return instant(content);
    case "$cut":
      return `${JSON.stringify(content.text.slice(0, room))}… ${count(content.size, "character")}`;
    case "$more":
      return content.kind === "array" ? `[… ${count(content.count, "item")}]` : `{… ${count(content.count, "entry", "entries")}}`;
    case "$large":
      return `large value, ${size(content.size)}`;
    case "$bytes":
      return `bytes, ${size(Math.floor((content.length * 3) / 4))}`;
    case "$int":
    case "$float":
    case "$datetime":
      return String(content);
    case "$tuple":
      return `(${items(content, room)})`;
    case "$set":
    case "$frozenset":
      return `${name.slice(1)} {${items(content, room)}}`;
    default:
      return JSON.stringify(content).slice(0, room);
  }
}

const FRAME = /^File "([^"]+)", line (\d+)(?:, in (.+))?$/;
const CHAINED = /^(During handling of the above exception|The above exception was the direct cause)/;

/** A stack as people read it, as `stack_lines` in orchestra/checkpoint/describe.py: where it failed first, file and line in front. */
export function stackLines(stack, base = "") {
  const errors = [{ said: "", frames: [] }];
  for (const line of stack.split("\n")) {
    const last = errors.at(-1);
    const bare = line.replace(/^[ |]+|[ |]+$/g, "");
    const frame = FRAME.exec(bare);
    if (CHAINED.test(bare)) errors.push({ said: "", frames: [] });
    else if (frame) last.frames.unshift(`${fileName(frame[1], base)}:${frame[2]}${frame[3] ? ` in ${frame[3]}` : ""}`);
    else if (/^… \d+ frames? of /.test(bare)) last.frames.unshift(bare);
    else if (!last.frames.length || last.said) continue;
    else if (line && !line.startsWith(" ")) last.said = bare;
    else if (bare.replace(/[\^~ ]/g, "") && !last.frames[0].includes(": ")) last.frames[0] += `: ${bare}`;
  }
  for (const { frames } of errors) frames.sort((a, b) => a.startsWith("…") - b.startsWith("…"));
  const [newest, ...earlier] = errors.reverse();
  const told = [...newest.frames, ...earlier.flatMap(({ said, frames }) => [`before that, ${said}`, ...frames])];
  return told.length ? told : stack.split("\n").filter((line) => line.trim());
}

/** A file as seen from the project, without steps up and down again. */
function fileName(file, base) {
  let plain = file;
  for (let before = ""; before !== plain; ) {
    before = plain;
    plain = plain.replace(/[^/]+\/\.\.\//, "");
  }
  return base && plain.startsWith(`${base}/`) ? plain.slice(base.length + 1) : plain;
}
