/**
 * The runs page: every run with its standing, progress, spending and confidence, kept up to date while it is open.
 *
 * Rows are made once and altered in place, so that nothing jumps; the order is that of the last question asked.
 */

import { h, replace } from "./dom.js";
import { ago, compact, confidence, count, duration, money, number, runParts, standing, words } from "./format.js";
import { current, link, settle } from "./route.js";
import { sparkline } from "./sparkline.js";

const PAGE = 50;
const REFRESH_MS = 700;
const TYPING_MS = 150;
const ORDER = ["running", "waiting", "paused", "interrupted", "failed", "parked", "completed", "cancelled"];

class Runs extends HTMLElement {
  #rows = new Map();
  #asked = 0;
  #stop = null;
  #timer = 0;
  #typing = 0;
  #ticking = 0;
  #shown = PAGE;
  #clock = 0;

  /** Where runs are read from; set before the element is connected. */
  source = null;

  connectedCallback() {
    const query = current().params;
    this.status = query.get("status") || "";
    this.#build(query.get("contains") || "");
    this.#load();
    this.#stop = this.source.events({}, (event) => this.#heard(event));
    this.#ticking = setInterval(() => this.#tick(), 5000);
    this.onkey = (event) => this.#key(event);
    document.addEventListener("keydown", this.onkey);
  }

  disconnectedCallback() {
    this.#stop?.();
    clearInterval(this.#ticking);
    clearTimeout(this.#timer);
    clearTimeout(this.#typing);
    document.removeEventListener("keydown", this.onkey);
  }

  #build(contains) {
    this.search = h("input", {
      type: "search",
      class: "runs-search",
      placeholder: "Search runs",
      value: contains,
      aria: { label: "Search runs by name" },
      autocomplete: "off",
      spellcheck: "false",
      on: { input: () => this.#typed() },
    });
    this.chips = h("div", { class: "runs-chips", role: "group", aria: { label: "Filter by status" } });
    this.total = h("p", { class: "runs-total", role: "status", aria: { live: "polite" } });
    this.list = h("ol", { class: "runs-list", aria: { label: "Runs" } });
    this.foot = h("div", { class: "runs-foot" });
    const top = h("div", { class: "runs-top" }, h("h1", { text: "Runs" }), this.search, this.chips, this.total);
    replace(this, top, heading(), this.list, this.foot);
  }

  // --- asking

  #typed() {
    clearTimeout(this.#typing);
    this.#typing = setTimeout(() => {
      this.#shown = PAGE;
      this.#load();
    }, TYPING_MS);
  }

  async #load() {
    const asked = ++this.#asked;
    const query = { status: this.status, contains: this.search.value.trim(), limit: this.#shown, offset: 0 };
    this.#remember(query);
    try {
      const found = await this.source.runs(query);
      if (asked === this.#asked && this.isConnected) this.#show(found, query);
    } catch (failure) {
      if (asked === this.#asked && this.isConnected) this.#failed(failure);
    }
  }

  #remember({ status, contains }) {
    settle("runs", null, { ...(status && { status }), ...(contains && { contains }) });
  }

  // --- showing

  #show({ runs, more, counts }, query) {
    this.#clock = Date.now() * 1000;
    this.#chips(counts);
    const all = Object.values(counts).reduce((sum, each) => sum + each, 0);
    const narrowed = Boolean(query.status || query.contains);
    this.total.textContent = narrowed ? `${number(runs.length)}${more ? "+" : ""} of ${count(all, "run")}` : count(all, "run");
    const seen = new Set();
    runs.forEach((run, at) => {
      seen.add(run.run);
      this.#place(this.#row(run), at);
    });
    for (const [name, row] of this.#rows) if (!seen.has(name)) this.#drop(name, row);
    this.list.hidden = runs.length === 0;
    this.querySelector(".runs-heading").hidden = runs.length === 0;
    replace(this.foot, ...(runs.length ? this.#moreButton(more) : [this.#nothing(narrowed)]));
  }

  #row(run) {
    let row = this.#rows.get(run.run);
    if (!row) {
      row = new Row(run.run);
      this.#rows.set(run.run, row);
    }
    row.show(run, this.#clock);
    return row;
  }

  #place(row, at) {
    const there = this.list.children[at];
    if (there !== row.node) this.list.insertBefore(row.node, there || null);
  }

  #drop(name, row) {
    row.node.remove();
    this.#rows.delete(name);
  }

  #chips(counts) {
    const names = ORDER.filter((name) => counts[name] || name === this.status);
    const all = Object.values(counts).reduce((sum, each) => sum + each, 0);
    const focused = this.chips.contains(document.activeElement) ? document.activeElement.dataset.status : null;
    replace(this.chips, this.#chip("", "All", all), ...names.map((name) => this.#chip(name, words(name), counts[name] || 0)));
    if (focused !== null) this.chips.querySelector(`[data-status="${focused}"]`)?.focus();
  }

  #chip(status, label, amount) {
    const look = status ? standing(status) : null;
    return h(
      "button",
      {
        type: "button",
        class: "chip",
        data: { status },
        aria: { pressed: String(this.status === status) },
        on: { click: () => this.#choose(status) },
      },
      look ? h("span", { class: `sign tone-${look.tone}`, aria: { hidden: "true" }, text: look.sign }) : null,
      label,
      h("span", { class: "chip-count", text: number(amount) }),
    );
  }

  #choose(status) {
    this.status = this.status === status ? "" : status;
    this.#shown = PAGE;
    this.#load();
  }

  #moreButton(more) {
    if (!more) return [];
    const press = () => {
      this.#shown += PAGE;
      this.#load();
    };
    return [h("button", { type: "button", class: "button", text: "Show older runs", on: { click: press } })];
  }

  #nothing(narrowed) {
    if (narrowed) {
      return h(
        "div",
        { class: "empty" },
        h("p", { class: "empty-title", text: "No run matches." }),
        h("button", { type: "button", class: "button", text: "Show all runs", on: { click: () => this.#clear() } }),
      );
    }
    return h(
      "div",
      { class: "empty" },
      h("p", { class: "empty-title", text: "There is no run in this store yet." }),
      h("p", { text: "Start one in a terminal; it appears here while it runs:" }),
      h("pre", { class: "command" }, h("code", { text: "orchestra run configs/code_review.yaml" })),
      h("p", { class: "dim", text: "orchestra init DIR makes a project with a workflow of your own." }),
    );
  }

  #clear() {
    this.search.value = "";
    this.status = "";
    this.#load();
  }

  #failed(failure) {
    replace(
      this.foot,
      h(
        "div",
        { class: "empty", role: "alert" },
        h("p", { class: "empty-title", text: "The runs cannot be read." }),
        h("p", { text: failure.message }),
        h("button", { type: "button", class: "button", text: "Try again", on: { click: () => this.#load() } }),
      ),
    );
  }

  // --- living

  #heard() {
    if (this.#timer) return;
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      this.#load();
    }, REFRESH_MS);
  }

  #tick() {
    this.#clock = Date.now() * 1000;
    for (const row of this.#rows.values()) row.tick(this.#clock);
  }

  // --- keys

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target === this.search) {
      if (event.key === "ArrowDown" || event.key === "Enter") this.#step(event, 1);
      if (event.key === "Escape") this.search.blur();
      return;
    }
    if (event.target.closest?.("input, textarea, select")) return;
    if (event.key === "/") {
      event.preventDefault();
      this.search.focus();
      this.search.select();
    }
    if (event.key === "j" || event.key === "ArrowDown") this.#step(event, 1);
    if (event.key === "k" || event.key === "ArrowUp") this.#step(event, -1);
  }

  #step(event, by) {
    const links = [...this.list.querySelectorAll("a.run-row")];
    if (!links.length) return;
    event.preventDefault();
    const at = links.indexOf(document.activeElement);
    const next = at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + by));
    links[next].focus();
  }
}

function heading() {
  const names = ["Status", "Run", "Progress", "Confidence", "Snapshots", "Tokens", "Cost", "Time", "Changed"];
  return h("div", { class: "runs-heading", aria: { hidden: "true" } }, ...names.map((name) => h("span", { text: name })));
}

/** One run of the list. */
class Row {
  #told = "";

  constructor(run) {
    const { name, rest } = runParts(run);
    this.cells = {
      status: h("span", { class: "cell-status" }),
      what: h("span", { class: "cell-what" }),
      progress: h("span", { class: "cell-progress" }),
      confidence: h("span", { class: "cell-confidence" }),
      snapshots: h("span", { class: "cell-number" }),
      tokens: h("span", { class: "cell-number" }),
      cost: h("span", { class: "cell-number" }),
      time: h("span", { class: "cell-number" }),
      changed: h("span", { class: "cell-number cell-changed" }),
    };
    const title = h("span", { class: "cell-run" }, h("span", { class: "run-name" }, h("b", { text: name }), " ", h("span", { class: "dim", text: rest })), this.cells.what);
    const { status, progress, confidence: sure, snapshots, tokens, cost, time, changed } = this.cells;
    const row = h("a", { class: "run-row", href: link("run", run), data: { route: "run" } }, status, title, progress, sure, snapshots, tokens, cost, time, changed);
    this.node = h("li", { data: { run } }, row);
  }

  /** Shows what is known of the run; does nothing when it is what stands there already. */
  show(run, now) {
    this.run = run;
    const told = JSON.stringify(run);
    if (told !== this.#told) {
      this.#told = told;
      this.#fill(run);
    }
    this.tick(now);
  }

  #fill(run) {
    const look = standing(run.standing);
    this.node.dataset.standing = run.standing;
    const tone = run.note ? "warn" : look.tone;
    replace(this.cells.status, h("span", { class: `sign tone-${tone}`, aria: { hidden: "true" }, text: look.sign }), words(run.standing));
    replace(this.cells.what, ...about(run));
    replace(this.cells.progress, ...progress(run));
    replace(this.cells.confidence, sparkline(run.spark), h("span", { class: "figure", text: confidence(run.confidence) }));
    this.cells.snapshots.textContent = number(run.snapshots);
    this.cells.tokens.textContent = run.tokens ? compact(run.tokens) : "–";
    this.cells.cost.textContent = money(run.cost_micros);
    this.cells.time.textContent = duration(run.elapsed_us);
  }

  /** Shows how long ago it changed. */
  tick(now) {
    const text = ago(this.run.updated_at, now);
    if (this.cells.changed.textContent !== text) this.cells.changed.textContent = text;
  }
}

/** The line below a run's name: what is the matter with it, else where it is and where it came from. */
function about(run) {
  if (run.damage) return [h("span", { class: "tone-bad", text: `✖ damaged: ${run.damage}` })];
  const parts = [];
  if (run.failure && run.standing !== "completed") parts.push(h("span", { class: "tone-bad", text: `${run.failure.error}: ${run.failure.message}` }));
  else if (run.questions) parts.push(h("span", { class: "tone-warn", text: `? ${count(run.questions, "question")} to answer` }));
  else if (run.phase) parts.push(h("span", { text: run.phase }));
  if (run.note) parts.push(h("span", { class: "tone-warn", text: run.note }));
  if (run.origin) parts.push(h("span", { class: "dim", text: `▲ fork of ${run.origin.run}@${run.origin.seq}` }));
  return parts;
}

function progress({ tasks, phase }) {
  if (!tasks || !tasks.total) return [h("span", { class: "dim", text: phase || "–" })];
  const bar = h("span", { class: "bar", aria: { hidden: "true" } }, h("span", { class: "bar-done" }));
  bar.style.setProperty("--share", String(tasks.done / tasks.total));
  return [bar, h("span", { class: "figure", text: `${number(tasks.done)}/${number(tasks.total)}` })];
}

customElements.define("orchestra-runs", Runs);
