/**
 * Search in the states of a run: a text anywhere, or a condition that must hold. Hits become marks on strip and list;
 * n and N go from one to the next.
 */

import { announce, button, h, say } from "./dom.js";
import { count } from "./format.js";

const KINDS = { search: "Text", where: "Condition" };
const HINTS = { search: "Search in states", where: "confidence.overall < 0.7" };
const MOST = 2000;

export class SearchBox {
  constructor(model) {
    this.model = model;
    this.kind = h(
      "select",
      { class: "search-kind", aria: { label: "What to search for" }, on: { change: () => this.hint() } },
      ...Object.entries(KINDS).map(([value, text]) => h("option", { value, text })),
    );
    this.input = h("input", {
      type: "search",
      class: "search-input",
      autocomplete: "off",
      spellcheck: "false",
      aria: { label: "Search in this run", keyshortcuts: "/" },
      on: { keydown: (event) => this.pressed(event), search: () => this.emptied() },
    });
    this.note = h("span", { class: "search-note", role: "status" });
    const step = (forward) => () => this.step(forward);
    this.back = button("Previous hit", step(false), { sign: "◂", key: "N", class: "quiet", hidden: true });
    this.next = button("Next hit", step(true), { sign: "▸", key: "n", class: "quiet", hidden: true });
    this.node = h(
      "form",
      { class: "search", role: "search", on: { submit: (event) => this.submitted(event) } },
      this.kind,
      this.input,
      this.back,
      this.next,
      this.note,
    );
    this.hint();
    model.on("marks", () => this.renew());
  }

  /** Begin again with what the address says. */
  recall(params) {
    for (const kind of Object.keys(KINDS)) {
      if (params.get(kind)) {
        this.kind.value = kind;
        this.input.value = params.get(kind);
        this.hint();
        this.run(false);
      }
    }
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  hint() {
    this.input.placeholder = `${HINTS[this.kind.value]}  /`;
  }

  pressed(event) {
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      if (this.input.value) {
        this.input.value = "";
        this.emptied();
      } else {
        this.input.blur();
      }
    }
  }

  submitted(event) {
    event.preventDefault();
    if (this.input.value.trim()) {
      this.run(true);
      this.input.blur();
    } else {
      this.emptied();
    }
  }

  emptied() {
    if (!this.input.value) this.clear();
  }

  clear() {
    this.abort?.abort();
    this.input.value = "";
    this.model.setMarks({ kind: null, text: "", seqs: [], hits: new Map(), busy: false, note: "" });
  }

  step(forward) {
    const found = this.model.nextOf(this.model.marks.seqs, forward);
    if (found !== null) this.model.select(found, { why: "jump" });
  }

  /** Search; `move` goes to the nearest hit when it is found. */
  async run(move) {
    this.abort?.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    const kind = this.kind.value;
    const text = this.input.value.trim();
    this.model.setMarks({ kind, text, seqs: [], hits: new Map(), busy: true, note: "searching…" });
    try {
      await (kind === "search" ? this.texts(text, signal, move) : this.condition(text, signal, move));
    } catch (failure) {
      if (failure.name !== "AbortError") this.model.setMarks({ busy: false, note: failure.message });
    }
  }

  async texts(text, signal, move) {
    const { model } = this;
    const hits = new Map();
    let told = 0;
    const show = (more) => {
      told = performance.now();
      const seqs = [...hits.keys()].sort((a, b) => a - b);
      model.setMarks({ seqs, hits, ...more });
    };
    const last = await model.source.search(
      model.run,
      text,
      (hit) => {
        hits.set(hit.seq, [...(hits.get(hit.seq) ?? []), hit]);
        if (hits.size === 1 || performance.now() - told > 150) show({});
      },
      { signal, limit: MOST },
    );
    show({ busy: false, note: noteOf(hits.size, last.truncated) });
    if (move) this.first(hits);
  }

  async condition(text, signal, move) {
    const { model } = this;
    const first = await model.source.first(model.run, text, { signal });
    if (move && first.seq !== null) model.select(first.seq, { why: "jump" });
    if (first.seq === null) {
      model.setMarks({ busy: false, note: "it never holds" });
      announce("The condition never holds");
      return;
    }
    model.setMarks({ seqs: [first.seq], note: `first at #${first.seq}` });
    const { seqs } = await model.source.matches(model.run, text, undefined, { signal });
    const sorted = [...seqs].sort((a, b) => a - b);
    model.setMarks({ seqs: sorted, busy: false, note: `first at #${first.seq}, holds in ${count(sorted.length, "snapshot")}` });
  }

  /** Go to the hit nearest to where we are, later ones first, and show where it is. */
  first(hits) {
    const { model } = this;
    const seqs = [...hits.keys()].sort((a, b) => a - b);
    if (!seqs.length || hits.has(model.selected)) return this.open(hits.get(model.selected));
    const seq = seqs.find((each) => each > model.selected) ?? seqs[0];
    model.select(seq, { why: "jump" });
    return this.open(hits.get(seq));
  }

  open(found) {
    const hit = found?.find((each) => each.where === "state" && each.path);
    if (hit) this.model.setPath(hit.path);
  }

  renew() {
    const { seqs, note, busy } = this.model.marks;
    this.node.setAttribute("aria-busy", String(busy));
    this.back.hidden = seqs.length < 1;
    this.next.hidden = seqs.length < 1;
    const place = seqs.indexOf(this.model.selected);
    say(this.note, place >= 0 && seqs.length > 1 ? `${place + 1} of ${note}` : note);
    this.note.title = note;
  }
}

function noteOf(many, truncated) {
  return many ? `${count(many, "hit")}${truncated ? " or more" : ""}` : "no hits";
}
