/**
 * The values a fork may change: the inputs and the context of a snapshot, one line each, written as JSON.
 *
 * As on the command line, a word that is no JSON is taken as text: src means "src". What begins like JSON and is not is
 * an error, so that a forgotten bracket never becomes text.
 */

import { h, replace } from "./dom.js";
import { brief, count, form } from "./format.js";

const PARTS = ["inputs", "context"];
const LONG = 60;
const SET = /^(inputs|context)\.[^\s=]+$/;

/**
 * What was typed, read.
 * @returns {{value?: any, problem?: string}}
 */
export function read(text) {
  const given = text.trim();
  if (given === "") return { value: "" };
  try {
    return { value: JSON.parse(given) };
  } catch (error) {
    if (/^[[{"]/.test(given)) return { problem: `This is not JSON: ${error.message.replace(/^JSON\.parse: /, "")}` };
    if (/^[-+]?\d[\d_.eE+-]*$/.test(given)) return { problem: "This looks like a number and is none. Put quotes around it if it is meant as text." };
    return { value: given };
  }
}

/** Inputs and context as lines that can be altered. */
export class Values {
  #lines = [];

  constructor(model, at, moved) {
    this.model = model;
    this.at = at;
    this.moved = moved;
    this.rows = h("div", { class: "values", role: "group", aria: { label: "Values of the new run" } });
    this.tally = h("span", { class: "dim", role: "status" });
    const more = h("button", { type: "button", class: "link", text: "Set another value", on: { click: () => this.#another() } });
    this.node = h("div", { class: "values-box" }, h("h3", {}, "Values ", this.tally), this.rows, more);
  }

  /** Whether everything can be read. */
  get valid() {
    return this.#lines.every((line) => !line.problem);
  }

  /** What differs from the snapshot, by path. */
  get changed() {
    return Object.fromEntries(this.#lines.filter((line) => line.changed).map((line) => [line.path, line.value]));
  }

  async load() {
    replace(this.rows, h("p", { class: "dim", text: "Reading…" }));
    try {
      const parts = await Promise.all(PARTS.map((part) => this.model.source.state(this.model.run, this.at, [part])));
      const added = this.#lines; // by somebody who was quicker than the answer
      this.#lines = [...parts.flatMap((found, at) => lines(PARTS[at], found.value, () => this.#typed())), ...added];
      replace(this.rows, ...this.#lines.map((line) => line.node));
      if (!this.#lines.length) replace(this.rows, h("p", { class: "dim", text: "This run has neither inputs nor context yet." }));
      added.length ? added.at(-1).name.focus() : this.#focus();
    } catch (failure) {
      replace(this.rows, h("p", { class: "tone-bad", text: failure.message }));
    }
  }

  /** The value that was selected in the state is the one that is meant. */
  #focus() {
    const [part, name] = this.model.path || [];
    const line = this.#lines.find((each) => each.path === `${part}.${name}`) || this.#lines[0];
    line?.input.focus();
    if (line?.input.localName === "input") line.input.select();
  }

  #another() {
    const line = new Line({ path: "", value: undefined, moved: () => this.#typed(), free: true });
    this.#lines.push(line);
    this.rows.append(line.node);
    line.name.focus();
    this.#typed();
  }

  #typed() {
    const changed = this.#lines.filter((line) => line.changed).length;
    const wrong = this.#lines.filter((line) => line.problem).length;
    this.tally.textContent = wrong ? `${count(wrong, "value")} cannot be read` : changed ? `${number(changed)} changed` : "as they are";
    this.moved();
  }
}

function number(value) {
  return String(value);
}

function lines(part, held, moved) {
  if (held === null || typeof held !== "object") return [];
  return Object.entries(held).map(([name, value]) => new Line({ path: `${part}.${name}`, value, moved }));
}

/** One value: its path, a field, and what is wrong with what stands in it. */
class Line {
  constructor({ path, value, moved, free = false }) {
    this.path = path;
    this.free = free;
    this.original = value === undefined ? undefined : JSON.stringify(value);
    this.moved = moved;
    const id = `value-${Math.random().toString(36).slice(2, 9)}`;
    this.error = h("p", { class: "value-problem", id: `${id}-error`, role: "alert", hidden: true });
    this.input = this.#field(id, value);
    this.name = free ? this.#nameField() : h("label", { for: id, class: "value-name", text: path, title: path });
    this.mark = h("span", { class: "value-mark", aria: { hidden: "true" } });
    this.node = h("div", { class: "value" }, this.mark, this.name, this.input, this.error);
    this.#check();
  }

  #field(id, value) {
    const text = value === undefined ? "" : shown(value);
    const long = text.length > LONG || text.includes("\n");
    const off = opaque(value);
    const input = h(long ? "textarea" : "input", {
      id,
      class: "field mono",
      rows: long ? Math.min(8, text.split("\n").length + 1) : null,
      spellcheck: "false",
      autocomplete: "off",
      readonly: off,
      title: off ? "This value is too large to be edited here; use orchestra fork --set" : null,
      "aria-label": this.free ? "Value" : null,
      "aria-describedby": `${id}-error`,
      on: { input: () => this.#typed() },
    });
    input.value = off ? brief(value, 120) : text;
    this.off = off;
    return input;
  }

  #nameField() {
    return h("input", { class: "field mono value-name", placeholder: "inputs.name", aria: { label: "Path of the value" }, spellcheck: "false", on: { input: () => this.#typed() } });
  }

  #typed() {
    if (this.free) this.path = this.name.value.trim();
    this.#check();
    this.moved();
  }

  #check() {
    if (this.off) return;
    const found = read(this.input.value);
    this.value = found.value;
    this.problem = found.problem || (this.free && (this.path || this.input.value) && !SET.test(this.path) ? "Write inputs.NAME or context.NAME." : "");
    this.changed = !this.problem && this.path !== "" && JSON.stringify(this.value) !== this.original;
    this.error.hidden = !this.problem;
    this.error.textContent = this.problem;
    this.input.setAttribute("aria-invalid", String(Boolean(this.problem)));
    this.node?.classList.toggle("changed", this.changed);
    if (this.mark) this.mark.textContent = this.changed ? "~" : "";
  }
}

function shown(value) {
  if (typeof value === "string" && read(value).value === value && !value.includes("\n")) return value;
  const flat = JSON.stringify(value);
  return flat.length > LONG && typeof value === "object" ? JSON.stringify(value, null, 2) : flat;
}

/** Values of which only a part was sent cannot be edited. */
function opaque(value) {
  if (value === null || typeof value !== "object") return false;
  const marked = form(value);
  if (marked && ["$cut", "$more", "$large"].includes(marked.name)) return true;
  return Object.values(value).some(opaque);
}
