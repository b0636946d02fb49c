/**
 * States as plain data in the API's JSON forms: taking a value out, applying a change without altering what was there,
 * telling two apart, finding text, and showing a part within a budget. Pure functions.
 */

import { form } from "./format.js";

/** Stands for a place where nothing is. */
export const MISSING = Symbol("missing");

const AROUND = 60;

/** What has entries: an object, a list, or the list inside a tuple. */
function opened(value) {
  const marked = form(value);
  if (!marked) {
    return value;
  }
  return marked.name === "$tuple" ? marked.content : null;
}

function isCollection(value) {
  return value !== null && typeof value === "object";
}

/** The value at a path, or MISSING. */
export function valueAt(value, path) {
  let held = value;
  for (const step of path) {
    held = entry(opened(held), step);
    if (held === MISSING) {
      return MISSING;
    }
  }
  return held;
}

function entry(held, step) {
  if (Array.isArray(held)) {
    const at = typeof step === "number" && step < 0 ? held.length + step : step;
    return typeof at === "number" && at >= 0 && at < held.length ? held[at] : MISSING;
  }
  return isCollection(held) && Object.hasOwn(held, escaped(step)) ? held[escaped(step)] : MISSING;
}

function escaped(step) {
  return typeof step === "string" && step.startsWith("$") ? `$${step}` : step;
}

/** The value with something else at a path, or with nothing there when `after` is empty. */
export function applied(value, path, after, at = 0) {
  if (at === path.length) {
    return after[0];
  }
  if (form(value)?.name === "$tuple") {
    return { $tuple: applied(value.$tuple, path, after, at) };
  }
  const step = escaped(path[at]);
  const gone = at === path.length - 1 && !after.length;
  if (Array.isArray(value)) {
    return gone ? value.slice(0, step) : put([...value], step, applied(value[step], path, after, at + 1));
  }
  const copy = { ...value };
  if (gone) {
    delete copy[step];
    return copy;
  }
  return put(copy, step, applied(copy[step], path, after, at + 1));
}

function put(copy, step, value) {
  copy[step] = value;
  return copy;
}

/**
 * What differs, at most so many: entry by entry, what is the same object is skipped. With `known`, what is not there
 * has its default (`defaults_below` in orchestra/history/compare.py).
 */
export function differences(old, made, path, limit, known = null) {
  const found = [];
  compare(old, made, path, found, limit, known);
  return found;
}

function compare(old, made, path, found, limit, known) {
  if (old === made || found.length >= limit) {
    return;
  }
  if (old === MISSING || made === MISSING) {
    found.push({ path, kind: old === MISSING ? "added" : "removed", before: old === MISSING ? null : old, after: made === MISSING ? null : made });
    return;
  }
  const [one, other] = [opened(old), opened(made)];
  if (isCollection(one) && isCollection(other) && Array.isArray(one) === Array.isArray(other)) {
    for (const step of steps(one, other)) {
      const field = known?.fields?.[step];
      const [before, after] = [own(one, step), own(other, step)];
      const old = before === MISSING ? (field?.default ?? MISSING) : before;
      const made = after === MISSING && field && "default" in field ? field.default : after;
      compare(old, made, [...path, unescaped(step)], found, limit, field?.below ?? known?.each ?? null);
    }
  } else if (JSON.stringify(old) !== JSON.stringify(made)) {
    found.push({ path, kind: "changed", before: old, after: made });
  }
}

function steps(one, other) {
  if (Array.isArray(one)) {
    return Array.from({ length: Math.max(one.length, other.length) }, (_, at) => at);
  }
  return new Set([...Object.keys(one), ...Object.keys(other)]);
}

function own(held, step) {
  return Object.hasOwn(held, step) ? held[step] : MISSING;
}

function unescaped(step) {
  return typeof step === "string" && step.startsWith("$$") ? step.slice(1) : step;
}

/** Every text below a value that has these letters, small or large. */
export function* search(value, path, wanted) {
  if (typeof value === "string") {
    const at = value.toLowerCase().indexOf(wanted);
    if (at >= 0) {
      yield { path, excerpt: excerpt(value, at, wanted.length) };
    }
    return;
  }
  const held = isCollection(value) ? opened(value) : null;
  if (held) {
    for (const step of Array.isArray(held) ? held.keys() : Object.keys(held)) {
      yield* search(held[step], [...path, unescaped(step)], wanted);
    }
  }
}

function excerpt(text, at, length) {
  const from = Math.max(0, at - AROUND);
  const to = at + length + AROUND;
  return (from ? "…" : "") + text.slice(from, to) + (to < text.length ? "…" : "");
}

/** A value as the server would send it: long texts cut, collections beyond the budget only named. */
export function shown(value, { budget, offset, limit, text }) {
  const state = { left: budget, whole: true, text };
  const held = opened(value);
  const listed = isCollection(held);
  const all = listed ? (Array.isArray(held) ? held.length : Object.keys(held).length) : null;
  const part = listed ? window(held, offset, limit) : value;
  state.whole = !listed || all <= limit;
  const made = listed ? filled(part, state) : atom(value, state);
  return { form: form(value)?.name === "$tuple" ? { $tuple: made } : made, whole: state.whole, kind: kindOf(value), count: all ?? (typeof value === "string" ? value.length : null) };
}

function window(held, offset, limit) {
  if (Array.isArray(held)) {
    return held.slice(offset, offset + limit);
  }
  return Object.fromEntries(Object.entries(held).slice(offset, offset + limit));
}

/** Level by level, so that what is near the top comes first. */
function filled(held, state) {
  const made = Array.isArray(held) ? [] : {};
  const waiting = [[held, made]];
  for (let at = 0; at < waiting.length; at += 1) {
    const [from, into] = waiting[at];
    for (const step of Array.isArray(from) ? from.keys() : Object.keys(from)) {
      into[step] = below(from[step], state, (inner) => waiting.push(inner));
      state.left -= String(step).length + 4;
    }
  }
  return made;
}

function below(value, state, later) {
  const held = isCollection(value) ? opened(value) : null;
  if (!held) {
    return atom(value, state);
  }
  const size = Array.isArray(held) ? held.length : Object.keys(held).length;
  if (size && (size * 8 > state.left || size > 1000)) {
    state.whole = false;
    return { $more: { kind: Array.isArray(held) ? "array" : "object", count: size } };
  }
  state.left -= size * 8;
  const into = Array.isArray(held) ? [] : {};
  later([held, into]);
  return form(value) ? { $tuple: into } : into;
}

function atom(value, state) {
  if (typeof value === "string" && value.length > state.text) {
    state.left -= state.text;
    return { $cut: { text: value.slice(0, state.text), size: value.length } };
  }
  state.left -= typeof value === "string" ? value.length + 2 : 8;
  return value;
}

function kindOf(value) {
  const marked = form(value);
  if (marked) {
    return { $at: "time", $bytes: "bytes", $tuple: "array", $set: "array", $frozenset: "array", $int: "number", $float: "number" }[marked.name] ?? "other";
  }
  if (value === null) {
    return "null";
  }
  if (Array.isArray(value)) {
    return "array";
  }
  return { object: "object", string: "text", number: "number", boolean: "bool" }[typeof value];
}
