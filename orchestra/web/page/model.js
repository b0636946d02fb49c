/**
 * One run as the page sees it: its snapshots, which one is selected, what is filtered, pinned and followed.
 *
 * Views listen and never talk to one another. Events: "columns", "outline", "select", "filter", "pin", "path", "tab",
 * "marks", "headlines", "live", "run", "failure", "follow", "gone", "link" (the connection). `detail` says what changed.
 */

import { Columns, FLAG } from "./columns.js";
import { fromParams, isEmpty, noFilter, passes, toPairs } from "./filter.js";
import { Headlines } from "./headlines.js";
import { Answers, pause } from "./lru.js";
import { emptyOutline, joined } from "./outline.js";
import { pathOf, referenceOf } from "./refs.js";
import { Talks } from "./talks.js";

export const TABS = ["changes", "before", "after", "sides", "talk"];

const KEPT = { details: 200, changes: 120, states: 24, diffs: 24 };
const AROUND = 5;
const PREFETCH_MS = 60;
const PASS_MS = 150;
const FAILED = new Set(["task_failed"]);

export class RunModel extends EventTarget {
  constructor(source, run) {
    super();
    this.source = source;
    this.run = run;
    this.info = null;
    this.server = null;
    this.columns = new Columns();
    this.outline = emptyOutline();
    this.headlines = new Headlines(this);
    this.selected = -1;
    this.pinned = null;
    this.path = null;
    this.tab = "changes";
    this.talks = new Talks(this);
    this.filter = noFilter();
    this.visible = new Int32Array(0);
    this.marks = { kind: null, text: "", seqs: [], hits: new Map(), busy: false, note: "" };
    this.follow = false;
    this.fresh = 0;
    this.no = -1;
    this.details = new Answers(KEPT.details);
    this.changed = new Answers(KEPT.changes);
    this.states = new Answers(KEPT.states);
    this.diffs = new Answers(KEPT.diffs);
    this.prefetching = 0;
    this.awaited = null;
    this.heading = 1;
  }

  tell(type, detail = {}) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  on(type, call) {
    this.addEventListener(type, ({ detail }) => call(detail));
    return this;
  }

  // --- opening

  /** Read the run and its snapshots; the outline follows by itself. @param {URLSearchParams} params */
  async open(params) {
    const early = this.source.changes(this.run, params.get("at") || "head").catch(() => null);
    const [info, rows] = await Promise.all([this.source.run(this.run), this.source.snapshots(this.run)]);
    this.info = info;
    this.run = info.run;
    this.no = rows.no ?? -1;
    this.columns.take(rows);
    this.filter = fromParams(params);
    this.tab = TABS.includes(params.get("tab")) ? params.get("tab") : "changes";
    this.talks.who = params.get("who");
    this.path = pathOf(params.get("path"));
    this.pinned = referenceOf(params.get("pin"), this.run);
    this.sift();
    this.selected = await this.place(params.get("at"));
    this.changed.get(this.selected, async () => {
      const diff = await early;
      return diff?.to?.seq === this.selected ? diff : this.source.changes(this.run, this.selected);
    });
    this.follow = !params.has("at") && info.standing === "running";
    return this;
  }

  async place(at) {
    const { columns } = this;
    if (!columns.count) {
      return -1;
    }
    const newest = columns.seqAt(columns.count - 1);
    if (at === null || at === "") {
      return newest;
    }
    if (/^\d+$/.test(at)) {
      const i = columns.atOrBefore(Number(at));
      this.astray = columns.indexOf(Number(at)) < 0 ? at : null;
      return columns.seqAt(Math.max(0, i));
    }
    try {
      return (await this.source.snapshot(this.run, at)).seq;
    } catch {
      this.astray = at;
      return newest;
    }
  }

  /** Read the outline, page by page, each shown as it comes. */
  async readOutline() {
    if (this.reading) {
      return;
    }
    this.reading = true;
    try {
      for (let more = true; more; ) {
        const part = await this.source.outline(this.run, this.outline.upto);
        more = part.more && part.upto > this.outline.upto;
        this.outline = joined(this.outline, part);
        this.flagErrors(part.errors);
        this.tell("outline");
      }
    } catch (failure) {
      this.tell("failure", { failure, what: "outline" });
    } finally {
      this.reading = false;
    }
  }

  flagErrors(seqs) {
    for (const seq of seqs) {
      const i = this.columns.indexOf(seq);
      if (i >= 0) {
        this.columns.flags[i] |= FLAG.error;
      }
    }
  }

  /** Read the run again, and the rows from a number on: a pin was set, something was lost on the way. */
  async refresh(first = null) {
    const asked = first === null ? null : this.source.snapshots(this.run, { first });
    const [info, rows] = await Promise.all([this.source.run(this.run), asked]);
    this.info = info;
    if (rows) {
      const before = this.columns.count;
      this.columns.take(rows);
      this.sift();
      this.tell("columns", { added: this.columns.count - before });
    }
    this.tell("run");
  }

  /** One snapshot was given a pin or a note: show it. */
  async touch(seq) {
    this.details.forget(seq);
    const rows = await this.source.snapshots(this.run, { first: seq, last: seq });
    this.columns.take(rows);
    this.tell("columns", { added: 0 });
    if (seq === this.selected) {
      this.tell("select", { why: "touched" });
    }
  }

  // --- moving

  get index() {
    return this.columns.indexOf(this.selected);
  }

  get newest() {
    return this.columns.count ? this.columns.seqAt(this.columns.count - 1) : -1;
  }

  /** Select a snapshot. `why` is a word for those who show it: key, list, strip, follow, link… */
  select(seq, { why = "" } = {}) {
    const i = Math.max(0, this.columns.atOrBefore(seq));
    const found = this.columns.count ? this.columns.seqAt(i) : -1;
    if (found < 0) {
      return;
    }
    if (this.follow && found !== this.newest && why !== "follow") {
      this.setFollow(false);
    }
    if (found !== this.selected || why === "again") {
      this.heading = found < this.selected ? -1 : 1;
      this.selected = found;
      this.tell("select", { why });
      this.prefetchSoon();
    }
  }

  /** Move by so many of the shown snapshots. */
  step(delta, why = "key") {
    const place = this.visiblePlace();
    const exact = this.visible[place] === this.index;
    const target = delta > 0 ? place + delta : place + delta + (exact ? 0 : 1);
    const bounded = Math.min(this.visible.length - 1, Math.max(0, target));
    if (this.visible.length) {
      this.select(this.columns.seqAt(this.visible[bounded]), { why });
    }
  }

  first(why = "key") {
    if (this.visible.length) {
      this.select(this.columns.seqAt(this.visible[0]), { why });
    }
  }

  last(why = "key") {
    if (this.visible.length) {
      this.select(this.columns.seqAt(this.visible[this.visible.length - 1]), { why });
    }
  }

  /** The place among the shown rows of the selected one, or of the nearest before it; -1 is before all. */
  visiblePlace(index = this.index) {
    let low = 0;
    let high = this.visible.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.visible[middle] <= index) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low - 1;
  }

  /** The next or previous of some sorted numbers, seen from the selected snapshot; null when there is none. */
  nextOf(seqs, forward) {
    const found = forward ? seqs.find((seq) => seq > this.selected) : seqs.findLast((seq) => seq < this.selected);
    return found ?? null;
  }

  setFollow(on) {
    if (on !== this.follow) {
      this.follow = on;
      if (on) {
        this.fresh = 0;
      }
      this.tell("follow");
    }
    if (on) {
      this.select(this.newest, { why: "follow" });
    }
  }

  // --- what is shown

  setFilter(filter) {
    this.filter = { ...noFilter(), ...filter };
    this.sift();
    this.tell("filter");
  }

  sift() {
    const { count } = this.columns;
    const all = isEmpty(this.filter);
    if (!this.rows || this.rows.length < count) {
      this.rows = new Int32Array(Math.max(1024, count * 2));
    }
    const pass = all ? null : passes(this.filter, this.columns);
    let shown = 0;
    for (let i = 0; i < count; i += 1) {
      if (all || pass(i)) {
        this.rows[shown] = i;
        shown += 1;
      }
    }
    this.visible = this.rows.subarray(0, shown);
  }

  pin(ref) {
    this.pinned = ref;
    this.tell("pin");
  }

  setPath(path) {
    this.path = path;
    this.tell("path");
  }

  setTab(tab) {
    if (TABS.includes(tab) && tab !== this.tab) {
      this.tab = tab;
      this.tell("tab");
    }
  }

  setMarks(marks) {
    this.marks = { ...this.marks, ...marks };
    this.tell("marks");
  }

  /** The pairs of this place's address. */
  params() {
    const pairs = [["at", String(this.selected)], ...toPairs(this.filter)];
    if (this.tab !== "changes") {
      pairs.push(["tab", this.tab]);
    }
    if (this.tab === "talk" && this.talks.who) pairs.push(["who", this.talks.who]);
    if (this.path) pairs.push(["path", JSON.stringify(this.path)]);
    if (this.pinned) {
      pairs.push(["pin", `${this.pinned.run}@${this.pinned.seq}`]);
    }
    if (this.marks.kind) {
      pairs.push([this.marks.kind, this.marks.text]);
    }
    return pairs;
  }

  // --- reading

  detail(seq = this.selected) {
    return this.details.get(seq, () => this.source.snapshot(this.run, seq));
  }

  changesOf(seq) {
    return this.changed.get(seq, () => this.source.changes(this.run, seq));
  }

  state(run, seq, path = [], options = {}) {
    const key = JSON.stringify([run, seq, path, options.offset ?? 0]);
    return this.states.get(key, () => this.source.state(run, seq, path, options));
  }

  peekState(run, seq) {
    return this.states.peek(JSON.stringify([run, seq, [], 0]));
  }

  diff(from, to) {
    const key = `${from.run}@${from.seq} ${to.run}@${to.seq}`;
    return this.diffs.get(key, () => this.source.diff(from, to));
  }

  /** What can wait lets what somebody looks for go first: the server works on one thing at a time. Not for long, though. */
  async letPass() {
    await null; // views hear of a step one after the other, and the one that asks may be the last
    await Promise.race([this.awaited, pause(PASS_MS)]);
  }

  prefetchSoon() {
    clearTimeout(this.prefetching);
    this.prefetching = setTimeout(() => this.prefetch(), PREFETCH_MS);
  }

  /** Ask for what the next steps will need, nearest first, one snapshot at a time: what somebody waits for goes first. */
  async prefetch() {
    const from = this.selected;
    const place = this.visiblePlace();
    await Promise.allSettled([this.changesOf(from), this.detail(from)]);
    for (let away = 1; away <= AROUND; away += 1) {
      for (const near of [place + away * this.heading, place - away * this.heading]) {
        if (this.selected !== from) {
          return;
        }
        if (near >= 0 && near < this.visible.length) {
          const seq = this.columns.seqAt(this.visible[near]);
          await Promise.allSettled([this.changesOf(seq), this.detail(seq)]);
        }
      }
    }
  }

  // --- live

  /** A snapshot came. Answers false when there is a hole before it. */
  append(event) {
    if (event.run !== this.run || event.seq <= this.newest) {
      return true;
    }
    if (this.newest >= 0 && event.seq > this.newest + 1) {
      return false;
    }
    const failed = event.triggers?.includes("error_encountered") || (event.events ?? []).some((e) => FAILED.has(e.kind));
    const flags = (event.marked ? FLAG.marked : 0) | (failed || event.status === "failed" ? FLAG.error : 0);
    const i = this.columns.push({ ...event, triggers: event.triggers ?? [], agents: event.agents ?? [], flags });
    this.headlines.put(event);
    this.no = Math.max(this.no, event.no ?? -1);
    if (isEmpty(this.filter) || passes(this.filter, this.columns)(i)) {
      this.show(i);
    }
    this.fresh += this.follow ? 0 : 1;
    return true;
  }

  show(i) {
    const length = this.visible.length;
    if (length >= this.rows.length) {
      const wider = new Int32Array(this.rows.length * 2);
      wider.set(this.visible);
      this.rows = wider;
    }
    this.rows[length] = i;
    this.visible = this.rows.subarray(0, length + 1);
  }
}
