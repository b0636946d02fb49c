/**
 * A run inside one file: the same questions as source.js answers, from data that came with the page.
 *
 * The file holds the whole state now and then, and what changed from each snapshot to the next. States share what did not
 * change, so comparing two of them looks only at what differs.
 */

import { applied, differences, MISSING, search, shown, valueAt } from "./bundle_state.js";
import { conversationIn } from "./bundle_talk.js";
import { pathText } from "./format.js";
import { Failure, reference } from "./source.js";

const STATES = 800;
const CHANGES = 2000;
const TEXT = 4096;

/** The data of this file: deflated, as base64, in a script element that is no script. */
export async function readData() {
  const text = atob(document.getElementById("orchestra-bundle").textContent.trim());
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) {
    bytes[at] = text.charCodeAt(at);
  }
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(plain).text());
}

export class BundleSource {
  #states = new Map();

  constructor(data) {
    this.data = data;
    this.bundle = true;
    this.readOnly = true;
    this.full = new Map(data.states);
    this.jumps = new Map(data.outline.jumps.map((jump) => [jump.seq, jump.to]));
    this.places = new Map(data.headlines.map((row, at) => [row.seq, at]));
  }

  async info() {
    return this.data.info;
  }

  async runs({ status = "", contains = "" } = {}) {
    const { run } = this.data;
    const fits = (!status || run.standing === status) && (!contains || run.run.includes(contains));
    return { runs: fits ? [run] : [], more: false, counts: { [run.standing]: 1 } };
  }

  async run(run) {
    return this.#mine(run) && this.data.run;
  }

  async snapshots(run, { first, last } = {}) {
    this.#mine(run);
    return first === undefined && last === undefined ? this.data.snapshots : sliced(this.data.snapshots, first ?? 0, last ?? Infinity);
  }

  async headlines(run, first, last) {
    this.#mine(run);
    return { first, rows: this.data.headlines.filter((row) => row.seq >= first && row.seq <= last) };
  }

  async outline(run, after = -1) {
    this.#mine(run);
    return after < this.data.outline.upto ? this.data.outline : { ...this.data.outline, ...nothing() };
  }

  async snapshot(run, at) {
    const seq = this.#seq(run, at);
    const place = this.places.get(seq);
    const row = this.data.headlines[place];
    return { ...this.data.details[place], events: row.events, seq, run: this.data.run.run, reference: `${this.data.run.run}@${seq}` };
  }

  // --- states

  async state(run, at, path = [], { budget = 262_144, offset = 0, limit = 1000 } = {}) {
    const seq = this.#seq(run, at);
    const value = valueAt(this.#state(seq), path);
    if (value === MISSING) {
      throw new Failure(404, "UnknownPath", `There is nothing at ${pathText(path)} in snapshot ${seq}.`);
    }
    const { form, whole, kind, count } = shown(value, { budget, offset, limit, text: path.length ? Infinity : TEXT });
    return { reference: `${this.data.run.run}@${seq}`, path, text: pathText(path), kind, count, value: form, whole };
  }

  rawLink(run, at, path) {
    const value = valueAt(this.#state(this.#seq(run, at)), path);
    const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
    return URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
  }

  async changes(run, at) {
    const seq = this.#seq(run, at);
    const before = this.#before(seq);
    const from = before === null ? this.data.base : { run: this.data.run.run, seq: before };
    const old = before === null ? this.data.base_state : this.#state(before);
    return this.#diff(from, { run: this.data.run.run, seq }, old ?? {}, this.#state(seq), []);
  }

  async diff(from, to, path = []) {
    const [one, other] = [from, to].map((ref) => this.#reference(ref));
    return this.#diff(one, other, this.#state(one.seq), this.#state(other.seq), path);
  }

  #diff(from, to, old, made, path) {
    const known = from === null ? null : path.reduce((held, step) => held?.fields?.[step]?.below ?? held?.each ?? null, this.data.defaults);
    const all = differences(valueAt(old, path), valueAt(made, path), path, CHANGES + 1, known);
    const counts = { added: 0, removed: 0, changed: 0 };
    const changes = all.slice(0, CHANGES).map((change) => {
      counts[change.kind] += 1;
      return { ...change, text: pathText(change.path), before: brief(change.before), after: brief(change.after) };
    });
    return { from: named(from), to: named(to), changes, counts, truncated: all.length > CHANGES };
  }

  /** The snapshot another one builds on: after a rollback that is its target. */
  #before(seq) {
    if (this.jumps.has(seq)) {
      return this.jumps.get(seq);
    }
    const place = this.places.get(seq);
    return place > 0 ? this.data.headlines[place - 1].seq : null;
  }

  /** The state at a snapshot: the last whole one before it and what changed since. */
  #state(seq) {
    let place = this.places.get(seq);
    const wanted = [];
    while (!this.#states.has(this.data.headlines[place].seq)) {
      const each = this.data.headlines[place].seq;
      if (this.full.has(each)) {
        this.#keep(each, this.full.get(each));
        break;
      }
      const patch = this.data.patches[place];
      if (!Array.isArray(patch)) {
        throw new Failure(patch?.pruned ? 410 : 422, patch?.pruned ? "PrunedSnapshot" : "Damaged", patch?.reason ?? "This state is not in the bundle.");
      }
      wanted.push(place);
      place -= 1;
      if (place < 0) {
        throw new Failure(422, "Damaged", "The states before this snapshot are not in the bundle.");
      }
    }
    let state = this.#states.get(this.data.headlines[place].seq);
    for (const each of wanted.reverse()) {
      state = this.data.patches[each].reduce((held, [path, ...after]) => applied(held, path, after), state);
      this.#keep(this.data.headlines[each].seq, state);
    }
    return state;
  }

  #keep(seq, state) {
    this.#states.set(seq, state);
    if (this.#states.size > STATES) {
      this.#states.delete(this.#states.keys().next().value);
    }
  }

  // --- what was said

  async conversation(run, at, who, from = {}) {
    const seq = this.#seq(run, at);
    const found = conversationIn(this.#state(seq), who, from, (names) => this.#said(seq, names), brief);
    return { run: this.data.run.run, seq, reference: `${this.data.run.run}@${seq}`, ...found };
  }

  /** The snapshots in which messages got their last words, by name; those that a fork brought along have none here. */
  #said(from, names) {
    const wanted = new Set(names);
    const found = new Map();
    for (let seq = from; seq !== null && wanted.size; seq = this.#before(seq)) {
      for (const name of this.jumps.has(seq) ? [] : this.#spoke(seq)) {
        if (wanted.delete(name)) found.set(name, { run: this.data.run.run, seq });
      }
    }
    return found;
  }

  /** The messages that a snapshot added or changed. */
  #spoke(seq) {
    const place = this.places.get(seq);
    const patch = this.data.patches[place];
    if (Array.isArray(patch)) {
      return patch.filter(([path]) => path[0] === "messages").flatMap(([path, held]) => (path.length > 1 ? [path[1]] : Object.keys(held ?? {})));
    }
    const before = place > 0 ? this.#readable(this.data.headlines[place - 1].seq, ["messages"]) : undefined;
    const now = this.#readable(seq, ["messages"]);
    if (before === undefined || now === undefined || now === MISSING) return [];
    return Object.keys(now).filter((name) => before === MISSING || !same(before[name] ?? MISSING, now[name]));
  }

  // --- who, where, when

  async blame(run, at, path) {
    let seq = this.#seq(run, at);
    const wanted = valueAt(this.#state(seq), path);
    if (wanted === MISSING) {
      throw new Failure(404, "UnknownPath", `There is nothing at ${pathText(path)} in snapshot ${seq}.`);
    }
    for (let before = this.#before(seq); before !== null; seq = before, before = this.#before(seq)) {
      const found = this.#readable(before, path);
      if (found !== undefined && !same(found, wanted)) {
        return this.#blamed(seq, path, wanted, found);
      }
    }
    return this.#blamed(seq, path, wanted, MISSING);
  }

  #readable(seq, path) {
    try {
      return valueAt(this.#state(seq), path);
    } catch {
      return undefined;
    }
  }

  #blamed(seq, path, after, before) {
    const row = this.data.headlines[this.places.get(seq)];
    const event = author(row.events, path, this.data.authors);
    return {
      run: this.data.run.run,
      seq,
      reference: `${this.data.run.run}@${seq}`,
      at: row.at,
      who: event?.who ?? null,
      event,
      exact: true,
      before: before === MISSING ? null : brief(before),
      after: brief(after),
      was_there: before !== MISSING,
      text: pathText(path),
    };
  }

  async touches(run, path) {
    this.#mine(run);
    const seqs = [];
    let last = MISSING;
    for (const { seq } of this.data.headlines) {
      const found = this.#readable(seq, path);
      if (found !== undefined && !same(found, last)) {
        seqs.push(seq);
        last = found;
      }
    }
    return { seqs };
  }

  async first() {
    throw new Failure(501, "NotInABundle", "Conditions are worked out by the server: use orchestra bisect RUN EXPR, or orchestra browse.");
  }

  matches() {
    return this.first();
  }

  async search(run, q, onHit, { limit = 200, signal } = {}) {
    this.#mine(run);
    const wanted = q.toLowerCase();
    let found = 0;
    let scanned = 0;
    for (let place = 0; place < this.data.headlines.length && found < limit; place += 1) {
      const { seq } = this.data.headlines[place];
      scanned += 1;
      for (const [path, ...after] of this.#brought(place)) {
        for (const hit of after.length ? search(after[0], path, wanted) : []) {
          if (found < limit) {
            onHit({ seq, path: hit.path, text: pathText(hit.path), excerpt: hit.excerpt, where: hit.path[0] === "decisions" ? "decision" : "state" });
          }
          found += 1;
        }
      }
      if (place % 500 === 499) {
        await new Promise((resolve) => setTimeout(resolve));
        signal?.throwIfAborted();
      }
    }
    return { done: true, scanned, truncated: found >= limit };
  }

  /** What a snapshot brought: its changes, or everything where nothing is known before it. */
  #brought(place) {
    const patch = this.data.patches[place];
    const { seq } = this.data.headlines[place];
    return Array.isArray(patch) ? patch : this.full.has(seq) ? [[[], this.full.get(seq)]] : [];
  }

  // --- the rest is as it was

  async decisions() {
    return this.data.decisions;
  }

  async questions() {
    return this.data.questions;
  }

  async outputs() {
    return { outputs: this.data.outputs };
  }

  async workflow() {
    return this.data.workflow;
  }

  async family() {
    return this.data.family;
  }

  async verify() {
    return this.data.verify;
  }

  plan() {
    return this.act();
  }

  async act() {
    throw new Failure(403, "ReadOnly", "A bundle can only be read. Open the run with orchestra browse to change something.");
  }

  outputLink(run, path) {
    const output = this.data.outputs.find((each) => each.path === path);
    return output?.content ? `data:application/octet-stream;base64,${output.content}` : "";
  }

  exportLink() {
    return "";
  }

  bundleLink() {
    return "";
  }

  events() {
    return () => {};
  }

  // --- references

  #mine(run) {
    if (run && !this.data.run.run.startsWith(run)) {
      throw new Failure(404, "UnknownRun", `This bundle holds ${this.data.run.run} alone: ${run} is not in it.`);
    }
    return true;
  }

  #reference(ref) {
    const text = reference(ref);
    const at = text.lastIndexOf("@");
    const run = at < 0 ? "" : text.slice(0, at);
    return { run: this.data.run.run, seq: this.#seq(run, at < 0 ? text : text.slice(at + 1)) };
  }

  #seq(run, at) {
    this.#mine(run);
    const seq = at === "head" ? this.data.run.head : Number(at);
    if (!this.places.has(seq)) {
      throw new Failure(404, "UnknownSnapshot", `There is no snapshot ${at} in this bundle: it has 0 to ${this.data.run.head}.`);
    }
    return seq;
  }
}

function named(ref) {
  return ref ? { ...ref, reference: `${ref.run}@${ref.seq}` } : null;
}

function brief(value) {
  return value === MISSING || value === undefined ? null : shown(value, { budget: 16_384, offset: 0, limit: 1000, text: TEXT }).form;
}

function same(one, other) {
  if (one === MISSING || other === MISSING) {
    return one === other;
  }
  return one === other || differences(one, other, [], 1).length === 0;
}

/** The event that most likely set a place: the one that names it, one of its kind, or the only one. */
function author(events, path, kinds) {
  const named = path.length > 1 ? events.find((event) => event.what === path[1] || event.who === path[1]) : null;
  const fitting = events.filter((event) => (kinds[path[0]] ?? []).includes(event.kind)).at(-1);
  return named ?? fitting ?? (events.length === 1 ? events[0] : null);
}

function nothing() {
  return { more: false, confidence: { seq: [], value: [] }, bars: [], phases: [], jumps: [], errors: [], decisions: [], waits: [], spent: { seq: [], tokens: [] } };
}

function sliced(answer, first, last) {
  const { columns } = answer;
  const seqs = columns.seq ?? Array.from({ length: answer.count }, (_, at) => (columns.first ?? answer.first ?? 0) + at);
  const kept = seqs.map((seq, at) => at).filter((at) => seqs[at] >= first && seqs[at] <= last);
  const cut = Object.fromEntries(Object.entries(columns).map(([name, held]) => [name, Array.isArray(held) ? kept.map((at) => held[at]) : held]));
  return { ...answer, count: kept.length, columns: { ...cut, seq: kept.map((at) => seqs[at]) } };
}
