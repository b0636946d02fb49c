/**
 * The lines that a tree shows: values opened as far as somebody opened them. Pure data; tree.js paints it.
 *
 * A node stands for one place in one or two states: `a` before, `b` after. In a tree of one state only `b` is used.
 */

import { entriesOf, isLazy, isOpenable, kindOf, linesOf, same, sizeOf, textChanges } from "./forms.js";

const PAGE = 1000;
const BEGINNING = "This is its beginning. The whole is too large to show: select it, open it alone, and download it.";

/** @typedef {{id: string, path: (string|number)[], label: string, depth: number, a: any, b: any, sign: string, openable: boolean, open: boolean, kind: string}} Line */

export class Branches {
  /** @param {{sides: 1|2, load: (side: "a"|"b", path: any[], offset: number) => Promise<any>}} given */
  constructor({ sides, load, changed }) {
    this.sides = sides;
    this.load = load;
    this.changed = changed;
    this.opened = new Set();
    this.shut = new Set();
    this.loaded = new Map();
    this.failed = new Map();
    this.limits = new Map();
    this.wide = 100;
    this.roots = [];
    this.indented = true;
    this.totals = new Map();
    this.onlyChanged = false;
  }

  /** What stands at the top: [{path, label, a, b, sign}]. */
  plant(roots) {
    this.roots = roots;
    this.loaded.clear();
    this.failed.clear();
    this.totals.clear();
  }

  /** All lines, in order. @returns {Line[]} */
  lines() {
    const lines = [];
    for (const root of this.roots) this.grow(root, 0, lines);
    return lines;
  }

  grow(root, depth, lines) {
    const id = JSON.stringify(root.path);
    const a = this.value("a", id, root.a);
    const b = this.value("b", id, root.b);
    const openable = isOpenable(a) || isOpenable(b);
    const open = openable && (this.opened.has(id) || (root.open === true && !this.shut.has(id)));
    const total = this.totals.get(id);
    const line = { ...root, id, depth, a, b, openable, open, total, kind: kindOf(b === undefined ? a : b) };
    lines.push(line);
    if (open) this.inside(line, lines);
  }

  value(side, id, given) {
    const found = this.loaded.get(side + id);
    return found === undefined ? given : found;
  }

  inside(line, lines) {
    const failure = this.failed.get(line.id);
    if (failure) {
      lines.push(this.message(line, failure, "failed"));
    } else if (this.waits("a", line) || this.waits("b", line)) {
      lines.push(this.message(line, "reading…", "loading"));
    } else if (kindOf(line.a) === "text" || kindOf(line.b) === "text") {
      this.text(line, lines);
    } else {
      this.entries(line, lines);
    }
  }

  /** Whether a side is still on its way. */
  waits(side, line) {
    return isLazy(line[side]) && !this.loaded.has(side + line.id);
  }

  entries(line, lines) {
    const limit = this.limits.get(line.id) ?? PAGE;
    const children = this.children(line);
    children.slice(0, limit).forEach((child) => this.grow(child, line.depth + 1, lines));
    const known = children.length;
    const total = Math.max(this.totals.get(line.id) ?? 0, known);
    if (total > limit || total > known) lines.push(this.message(line, `${total - Math.min(limit, known)} more: show the next`, "more"));
  }

  children(line) {
    const found = new Map();
    for (const [side, value] of [["a", line.a], ["b", line.b]]) {
      if (value === undefined || (kindOf(value) !== "object" && kindOf(value) !== "array") || isLazy(value)) continue;
      for (const [step, each] of entriesOf(value)) {
        const key = typeof step === "number" ? step : `k${step}`;
        const entry = found.get(key) ?? { step, a: undefined, b: undefined };
        entry[side] = each;
        found.set(key, entry);
      }
    }
    const children = [...found.values()].map(({ step, a, b }) => this.child(line, step, a, b));
    return this.sides === 2 && this.onlyChanged ? children.filter((child) => child.sign) : children;
  }

  child(line, step, a, b) {
    const path = [...line.path, step];
    const label = typeof step === "number" ? `[${step}]` : step;
    const child = { path, label, a, b, sign: this.signAt(line, path, a, b) };
    if (this.onlyChanged && child.sign === "~") child.open = true;
    return child;
  }

  /** What is inside something added was added; else the list of changes knows, and where it ends the values are compared. */
  signAt(line, path, a, b) {
    if (this.sides === 2 && (line.sign === "+" || line.sign === "−")) return line.sign;
    const known = this.touched(path);
    return known === null ? signOf(a, b) : known;
  }

  /** In a tree of one state: what this snapshot changed is marked, and what holds it. */
  touched(path) {
    return this.changed ? this.changed(path) : "";
  }

  text(line, lines) {
    const [a, b] = [plain(line.a), plain(line.b)];
    const both = this.sides === 2 && a !== null && b !== null;
    const one = line.sign === "+" || line.sign === "−" ? line.sign : "";
    const wide = Math.max(20, this.wide - (this.indented ? line.depth * 2 + 2 : 0));
    const rows = both ? textChanges(a, b, wide) : linesOf(b ?? a ?? "", wide).map((text) => ({ sign: one, text }));
    const limit = this.limits.get(line.id) ?? PAGE * 4;
    rows.slice(0, limit).forEach((row, n) => lines.push({ ...this.message(line, row.text, "line"), sign: row.sign, number: n }));
    if (rows.length > limit) lines.push(this.message(line, `${rows.length - limit} more lines: show the next`, "more"));
    else if (isLazy(line.a) || isLazy(line.b)) lines.push(this.message(line, BEGINNING, "loading"));
  }

  message(line, text, kind) {
    const id = `${line.id} ${kind}`;
    return { id, path: line.path, label: "", depth: line.depth + 1, a: undefined, b: text, sign: "", openable: false, open: false, kind, of: line.id };
  }

  // --- opening

  /** Open or close a line; answers a promise when something must be read first. */
  toggle(line) {
    if (line.open) {
      this.opened.delete(line.id);
      this.shut.add(line.id);
      return null;
    }
    return this.open(line);
  }

  open(line) {
    this.opened.add(line.id);
    this.shut.delete(line.id);
    this.failed.delete(line.id);
    const asked = [["a", line.a], ["b", line.b]].filter(([, value]) => isLazy(value));
    return asked.length ? Promise.all(asked.map(([side]) => this.read(side, line))) : null;
  }

  async read(side, line, offset = 0) {
    try {
      const answer = await this.load(side, line.path, offset);
      if (answer.count > sizeIn(answer.value)) this.totals.set(line.id, answer.count);
      const known = offset ? this.loaded.get(side + line.id) : null;
      this.loaded.set(side + line.id, known ? appended(known, answer.value) : answer.value);
    } catch (failure) {
      this.failed.set(line.id, failure.message);
    }
  }

  /** Show the next page of a long collection or text. */
  more(line, owner) {
    const limit = (this.limits.get(line.of) ?? PAGE) + PAGE;
    this.limits.set(line.of, limit);
    const known = this.loaded.get(`b${line.of}`) ?? this.loaded.get(`a${line.of}`);
    const have = known === undefined ? Infinity : sizeIn(known);
    const total = this.totals.get(line.of) ?? 0;
    if (have >= Math.min(limit, total)) return null;
    const sides = ["a", "b"].filter((side) => this.loaded.has(side + line.of));
    return Promise.all(sides.map((side) => this.read(side, { id: line.of, path: owner }, have)));
  }
}

function sizeIn(value) {
  const kind = kindOf(value);
  return (kind === "array" || kind === "object") && !isLazy(value) ? sizeOf(value) : Infinity;
}

function appended(known, more) {
  if (Array.isArray(known) && Array.isArray(more)) return known.concat(more);
  return Object.fromEntries([...Object.entries(known), ...Object.entries(more)]);
}

function plain(value) {
  return typeof value === "string" ? value : value?.$cut?.text ?? null;
}

/** + added, − removed, ~ changed, nothing where both are the same. */
export function signOf(a, b) {
  if (a === undefined) return "+";
  if (b === undefined) return "−";
  return same(a, b) ? "" : "~";
}
