/**
 * Values in the API's forms, as the tree needs them: what kind a value is and what it holds.
 */

import { form, keyText } from "./format.js";

const SEQUENCES = new Set(["$tuple", "$set", "$frozenset"]);
const LAZY = new Set(["$more", "$large", "$cut"]);
export const LONG = 96;

/** The kind of a value: object, array, text, number, bool, null, bytes, time, other or absent. */
export function kindOf(value) {
  if (value === undefined) return "absent";
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "string") return "text";
  if (typeof value === "number") return "number";
  if (typeof value === "boolean") return "bool";
  const marked = form(value);
  return marked ? kindOfForm(marked) : "object";
}

function kindOfForm({ name, content }) {
  if (SEQUENCES.has(name)) return "array";
  if (name === "$more") return content.kind === "array" ? "array" : "object";
  if (name === "$cut") return "text";
  if (name === "$bytes" || name === "$large") return "bytes";
  if (name === "$at" || name === "$datetime") return "time";
  return name === "$int" || name === "$float" ? "number" : "other";
}

/** Whether the value itself must still be asked for. */
export function isLazy(value) {
  const marked = form(value);
  return marked !== null && LAZY.has(marked.name);
}

/** Whether there is something to open. */
export function isOpenable(value) {
  const kind = kindOf(value);
  if (isLazy(value)) return true;
  if (kind === "text") return value.length > LONG || value.includes("\n");
  return (kind === "object" || kind === "array") && sizeOf(value) > 0;
}

/** How many entries a collection has. */
export function sizeOf(value) {
  const marked = form(value);
  if (marked) {
    if (marked.name === "$more") return marked.content.count;
    return Array.isArray(marked.content) ? marked.content.length : 0;
  }
  return Array.isArray(value) ? value.length : Object.keys(value).length;
}

/** The entries of a collection that is here: [step, value]. Objects come in the order of their names. */
export function entriesOf(value) {
  const marked = form(value);
  const list = marked && SEQUENCES.has(marked.name) ? marked.content : value;
  if (Array.isArray(list)) return list.map((each, n) => [n, each]);
  return Object.keys(list)
    .map((key) => [keyText(key), list[key]])
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
}

/** Whether two values are the same, as far as they are here. The order of names does not matter. */
export function same(a, b) {
  if (a === b) return true;
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && same(a[name], b[name]));
}

/** The lines of a text, none longer than so many characters. */
export function linesOf(text, wide) {
  const lines = [];
  for (const line of text.split("\n")) {
    let from = 0;
    while (line.length - from > wide) {
      const space = line.lastIndexOf(" ", from + wide);
      const to = space > from + wide / 2 ? space + 1 : from + wide;
      lines.push(line.slice(from, to));
      from = to;
    }
    lines.push(line.slice(from));
  }
  return lines;
}

/** The lines of two texts: the same ones at either end once, what differs between them with its sign. */
export function textChanges(before, after, wide) {
  const a = linesOf(before, wide);
  const b = linesOf(after, wide);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const context = 3;
  return [
    ...a.slice(Math.max(0, head - context), head).map((text) => ({ sign: "", text })),
    ...a.slice(head, a.length - tail).map((text) => ({ sign: "−", text })),
    ...b.slice(head, b.length - tail).map((text) => ({ sign: "+", text })),
    ...a.slice(a.length - tail, a.length - tail + context).map((text) => ({ sign: "", text })),
  ];
}
