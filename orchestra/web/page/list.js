/**
 * The snapshots as a list: a fixed number of rows that are used again and again, whatever the run's length.
 *
 * Oldest first, as the terminal lists them and as the strip runs: what arrives is added at the end and moves nothing.
 */

import { FLAG } from "./columns.js";
import { framed, h, say } from "./dom.js";
import { count, instant, number, time, words } from "./format.js";
import { drawLane, Lanes, laneCell } from "./lanes.js";
import { signOf } from "./signs.js";

export const ROW = 26;
const MARGIN = 8;
const AHEAD = 60;

class List extends HTMLElement {
  pool = [];
  top = -1;
  // What the browser would have to lay the page out for is kept: where the list is scrolled to, and how high it is.
  scrolled = 0;
  high = 0;

  connectedCallback() {
    this.spacer = h("div", { class: "list-spacer" });
    this.scroller = h(
      "div",
      {
        class: "list-scroll",
        role: "listbox",
        tabindex: "0",
        aria: { label: "Snapshots, oldest first" },
        on: { scroll: () => this.scrolledTo(this.scroller.scrollTop), click: (event) => this.clicked(event) },
      },
      this.spacer,
    );
    this.note = h("p", { class: "list-empty", hidden: true });
    this.total = h("span", { class: "dim" });
    this.append(
      h("header", { class: "pane-head" }, h("h2", { text: "Snapshots" }), this.total),
      this.note,
      this.scroller,
    );
    this.lanes = new Lanes();
    this.soon = framed(() => this.paint(true));
    this.listen();
    this.sized = new ResizeObserver(() => this.measured());
    this.sized.observe(this.scroller);
    this.renew();
    this.reveal("middle");
  }

  disconnectedCallback() {
    this.sized?.disconnect();
  }

  listen() {
    const { model } = this;
    model
      .on("columns", () => this.renew())
      .on("live", () => this.renew(true))
      .on("filter", () => {
        this.renew();
        this.reveal("middle");
      })
      .on("outline", () => this.renew())
      .on("run", () => this.renew())
      .on("headlines", () => this.soon())
      .on("marks", () => this.soon())
      .on("pin", () => this.soon())
      .on("select", ({ why }) => {
        if (why !== "list") this.reveal(why === "follow" ? "end" : "near");
        this.reselect();
      });
  }

  measured() {
    const hidden = this.high === 0;
    this.high = this.scroller.clientHeight;
    this.scrolled = this.scroller.scrollTop;
    if (hidden) this.reveal("middle");
    this.paint(true);
  }

  scrolledTo(top) {
    this.scrolled = top;
    this.paint();
  }

  bringTo(top) {
    const most = Math.max(0, this.model.visible.length * ROW - this.high);
    const bounded = Math.min(most, Math.max(0, top));
    if (bounded !== this.scrolled) {
      this.scroller.scrollTop = bounded;
      this.scrolledTo(bounded);
    }
  }

  /** Another row is selected: only two rows look different. */
  reselect() {
    const { model } = this;
    for (const row of this.pool) {
      if (row.place >= 0 && row.seq !== model.selected && row.chosen) row.choose(false);
    }
    const row = this.pool.find((each) => each.place >= 0 && each.seq === model.selected);
    if (row) row.choose(true);
    this.point(row);
  }

  point(row) {
    if (row) this.scroller.setAttribute("aria-activedescendant", row.node.id);
    else this.scroller.removeAttribute("aria-activedescendant");
  }

  renew(quick = false) {
    const { visible, columns, outline, info } = this.model;
    if (!quick) {
      this.lanes.set(outline.jumps, info?.forks ?? [], info?.origin ?? null);
      this.style.setProperty("--lane", `${this.lanes.width}px`);
      this.style.setProperty("--digits", `${Math.max(2, String(this.model.newest).length)}ch`);
    }
    this.spacer.style.height = `${visible.length * ROW}px`;
    const all = visible.length === columns.count;
    say(this.total, all ? number(columns.count) : `${number(visible.length)} of ${number(columns.count)}`);
    this.note.hidden = visible.length > 0;
    say(this.note, columns.count ? "No snapshot passes the filter." : "This run has no snapshots yet.");
    this.soon();
  }

  /** Bring the selected row into sight; "near" moves as little as can be. */
  reveal(how) {
    const place = this.model.visiblePlace();
    const { high: height, scrolled: top } = this;
    if (place < 0 || !height) return;
    const y = place * ROW;
    const fits = Math.floor(height / ROW);
    if (how === "end") {
      this.bringTo(y - height + ROW * 2);
    } else if (how === "middle" || y < top - height || y > top + height * 2) {
      this.bringTo(y - Math.floor(fits / 2) * ROW);
    } else if (y < top + ROW) {
      this.bringTo(y - ROW);
    } else if (y > top + height - ROW * 2) {
      this.bringTo(y - height + ROW * 2);
    }
  }

  // --- painting

  paint(again = false) {
    const { model } = this;
    const height = this.high || 600;
    const shown = model.visible.length;
    const first = Math.max(0, Math.floor(this.scrolled / ROW) - MARGIN);
    const last = Math.min(shown, first + Math.ceil(height / ROW) + 2 * MARGIN);
    if (!again && first === this.top) return;
    this.top = first;
    this.fill(Math.ceil(height / ROW) + 2 * MARGIN + 1);
    for (const row of this.pool) row.wanted = false;
    for (let place = first; place < last; place += 1) {
      const row = this.pool[place % this.pool.length];
      row.wanted = true;
      this.show(row, place, again);
    }
    for (const row of this.pool) if (!row.wanted) row.hide();
    this.point(this.pool.find((row) => row.wanted && row.seq === model.selected));
    if (this.high) this.ask(first, last); // before that it is not known which rows are in sight
  }

  fill(many) {
    if (this.pool.length >= many) return;
    while (this.pool.length < many) {
      const row = new Row(this.pool.length);
      this.pool.push(row);
      this.scroller.append(row.node);
    }
    for (const row of this.pool) row.place = -1;
  }

  show(row, place, again) {
    if (row.place === place && !again) return;
    const { model } = this;
    row.put(place, model.visible.length);
    row.fill(model, model.visible[place], this.lanes);
  }

  ask(first, last) {
    const { model } = this;
    const seqs = [];
    const from = Math.max(0, first - AHEAD);
    const to = Math.min(model.visible.length, last + AHEAD);
    for (let place = from; place < to; place += 1) seqs.push(model.columns.seqAt(model.visible[place]));
    model.headlines.want(seqs);
  }

  clicked(event) {
    const node = event.target.closest(".list-row");
    if (node && !event.target.closest("a")) this.model.select(Number(node.dataset.seq), { why: "list" });
  }
}

class Row {
  constructor(number) {
    this.place = -1;
    this.seq = -1;
    this.lane = laneCell();
    this.number = h("span", { class: "list-seq" });
    this.sign = h("span", { class: "list-sign" });
    this.text = h("span", { class: "list-text" });
    this.who = h("span", { class: "list-who" });
    this.extra = h("span", { class: "list-extra" });
    this.time = h("span", { class: "list-time" });
    const parts = [this.lane.node, this.number, this.sign, h("span", { class: "list-line" }, this.text, this.who), this.extra, this.time];
    this.node = h("div", { class: "list-row", role: "option", id: `snapshot-row-${number}` }, ...parts);
  }

  hide() {
    if (this.place !== -1 || !this.node.hidden) {
      this.place = -1;
      this.seq = -1;
      this.node.hidden = true;
    }
  }

  put(place, total) {
    if (this.place !== place) {
      this.place = place;
      this.node.hidden = false;
      this.node.style.transform = `translateY(${place * ROW}px)`;
      this.node.setAttribute("aria-posinset", String(place + 1));
    }
    this.node.setAttribute("aria-setsize", String(total));
  }

  fill(model, i, lanes) {
    const { columns } = model;
    const seq = columns.seqAt(i);
    const flags = columns.flags[i];
    const triggers = columns.triggersOf(i);
    const headline = model.headlines.get(seq);
    const { sign, word, tone } = headline?.damage ? { sign: "⚠", word: "damaged", tone: "bad" } : signOf(flags, triggers);
    this.seq = seq;
    this.node.dataset.seq = String(seq);
    say(this.number, String(seq));
    say(this.sign, sign);
    this.sign.className = `list-sign tone-${tone}`;
    say(this.text, lineOf(headline, columns, i));
    say(this.who, whoOf(columns, i));
    say(this.time, time(columns.atOf(i)));
    say(this.extra, extraOf(flags, seq, model));
    this.node.title = titleOf(headline, columns, i, word);
    const undone = drawLane(this.lane, lanes, seq, flags);
    const hit = model.marks.hits.size ? model.marks.hits.has(seq) : model.marks.seqs.includes(seq);
    const pinned = model.pinned?.seq === seq && model.pinned.run === model.run;
    this.state(seq === model.selected, undone, hit, pinned, flags);
  }

  choose(selected) {
    this.chosen = selected;
    this.node.setAttribute("aria-selected", String(selected));
    this.node.classList.toggle("selected", selected);
  }

  state(selected, undone, hit, pinned, flags) {
    this.chosen = selected;
    this.node.setAttribute("aria-selected", String(selected));
    this.node.className =
      "list-row" +
      (selected ? " selected" : "") +
      (undone ? " undone" : "") +
      (hit ? " hit" : "") +
      (pinned ? " pinned-a" : "") +
      (flags & FLAG.error ? " bad" : "");
  }
}

function lineOf(headline, columns, i) {
  return headline ? headline.main || "nothing new" : columns.triggersOf(i).map(words).join(", ") || "…";
}

function whoOf(columns, i) {
  const agents = columns.agentsOf(i);
  return agents.length > 1 ? `${agents[0]} +${agents.length - 1}` : agents[0] ?? "";
}

function extraOf(flags, seq, model) {
  const forks = (model.info?.forks ?? []).filter((fork) => fork.seq === seq).length;
  const pinned = model.pinned?.seq === seq && model.pinned.run === model.run ? "A" : "";
  return [
    pinned,
    forks ? `▲${forks > 1 ? forks : ""}` : "",
    flags & FLAG.pinned && flags & (FLAG.error | FLAG.rolledBack) ? "◆" : "",
    flags & FLAG.note && flags & (FLAG.error | FLAG.rolledBack | FLAG.pinned) ? "✎" : "",
  ].join("");
}

function titleOf(headline, columns, i, word) {
  const agents = columns.agentsOf(i);
  const lines = [
    `Snapshot ${number(columns.seqAt(i))}${word ? `, ${word}` : ""}`,
    instant(columns.atOf(i)),
    columns.triggersOf(i).map(words).join(", "),
    agents.length > 3 ? count(agents.length, "agent") : agents.join(", "),
    ...(headline?.events ?? []).slice(0, 8).map((event) => event.sentence ?? ""),
  ];
  return lines.filter(Boolean).join("\n");
}

customElements.define("orchestra-list", List);
