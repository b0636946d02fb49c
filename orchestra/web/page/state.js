/**
 * The state of the selected snapshot: what changed, how it was before, how it is after, both side by side, what was said.
 *
 * "Before" is what the snapshot builds on, or A while A is pinned. What somebody opened stays open from snapshot to snapshot.
 */

import { Branches } from "./branches.js";
import "./conversation.js";
import { button, h, replace, say, trouble } from "./dom.js";
import { count } from "./format.js";
import { entriesOf, isLazy, kindOf } from "./forms.js";
import { Latest } from "./lru.js";
import { TABS } from "./model.js";
import "./tree.js";
import { ValueBar } from "./valuebar.js";

const NAMES = { changes: "Changes", before: "Before", after: "After", sides: "Side by side", talk: "Conversation" };
const MODES = { changes: "changes", before: "one", after: "one", sides: "sides" };
const SLOW_MS = 120;

class State extends HTMLElement {
  latest = new Latest();
  shown = "";

  connectedCallback() {
    this.tabs = TABS.map((tab, n) =>
      h("button", {
        type: "button",
        role: "tab",
        id: `tab-${tab}`,
        class: "tab",
        title: `${NAMES[tab]} (${n + 1})`,
        aria: { controls: "state-panel" },
        text: NAMES[tab],
        on: { click: () => this.model.setTab(tab), keydown: (event) => this.arrow(event, n) },
      }),
    );
    this.summary = h("span", { class: "state-summary dim", role: "status" });
    this.narrow = button("Only differences", () => this.toggleNarrow(), { class: "quiet cutoff", title: "Show only what differs", aria: { pressed: "true" } });
    const head = h("header", { class: "pane-head" }, h("h2", { class: "offscreen", text: "State" }), h("div", { class: "tabs", role: "tablist", aria: { label: "State" } }, ...this.tabs), this.summary);
    this.tree = h("orchestra-tree", { id: "state-tree", label: "State" });
    this.heads = h("div", { class: "sides-head", hidden: true });
    this.message = h("div", { class: "state-message", hidden: true });
    this.talk = document.createElement("orchestra-conversation");
    this.talk.model = this.model;
    this.talk.hidden = true;
    this.panel = h("div", { id: "state-panel", class: "state-panel", role: "tabpanel" }, this.heads, this.message, this.tree, this.talk);
    this.value = new ValueBar(this.model);
    this.append(head, this.panel, this.value.node);
    this.branches = Object.fromEntries(Object.keys(MODES).map((tab) => [tab, this.makeBranches(tab)]));
    this.branches.sides.onlyChanged = true;
    this.listen();
    this.refresh();
  }

  listen() {
    this.tree.addEventListener("choose", ({ detail }) => this.model.setPath(detail.path));
    this.tree.addEventListener("blame", ({ detail }) => {
      this.model.setPath(detail.path);
      this.value.blame();
    });
    this.model
      .on("select", () => this.refresh())
      .on("tab", () => this.refresh())
      .on("pin", () => this.refresh())
      .on("path", () => this.tree.choose(this.model.path))
      .on("run", () => this.markTabs());
  }

  makeBranches(tab) {
    return new Branches({
      sides: tab === "changes" || tab === "sides" ? 2 : 1,
      changed: (path) => this.signFor(tab, path),
      load: (side, path, offset) => {
        const ref = side === "a" || tab === "before" ? this.sides.from : this.sides.to;
        return this.model.state(ref.run, ref.seq, path, { offset });
      },
    });
  }

  /** The sign of a place, or null where the list of changes does not reach. */
  signFor(tab, path) {
    if (tab === "before" || !this.touched) return "";
    const found = this.touched.get(JSON.stringify(path));
    return found ?? (tab === "sides" && this.diff.truncated ? null : "");
  }

  arrow(event, n) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by) {
      const shown = this.tabs.filter((node) => !node.hidden);
      const next = shown[(shown.indexOf(this.tabs[n]) + by + shown.length) % shown.length];
      this.model.setTab(TABS[this.tabs.indexOf(next)]);
      next.focus();
      event.preventDefault();
      event.stopPropagation();
    }
  }

  toggleNarrow() {
    const { sides } = this.branches;
    sides.onlyChanged = !sides.onlyChanged;
    this.narrow.setAttribute("aria-pressed", String(sides.onlyChanged));
    this.plantSides();
    this.tree.renew();
  }

  // --- what is shown

  /** Show what is selected: at once if it is at hand, else as soon as it comes; meanwhile the last stays. */
  refresh() {
    const { model } = this;
    this.markTabs();
    const talks = model.tab === "talk";
    this.talk.hidden = !talks;
    this.value.node.classList.toggle("aside", talks);
    if (model.selected < 0) {
      this.say("This run has no snapshots yet.");
      return;
    }
    const want = this.wanted();
    if (talks) {
      this.converse(want);
      return;
    }
    const ready = this.peek(want);
    if (ready) {
      this.show(want, ready);
      this.said(want);
    } else {
      this.wait(want);
    }
  }

  markTabs() {
    const { model } = this;
    this.tabs.forEach((node, n) => {
      const on = TABS[n] === model.tab;
      node.setAttribute("aria-selected", String(on));
      node.tabIndex = on ? 0 : -1;
      node.hidden = TABS[n] === "talk" && !on && !model.talks.speakers.length;
    });
    this.panel.setAttribute("aria-labelledby", `tab-${model.tab}`);
  }

  /** The conversation in the place of the state. */
  async converse(want) {
    this.settle();
    for (const node of [this.tree, this.heads, this.message]) node.hidden = true;
    say(this.summary, "");
    this.model.awaited = this.talk.refresh();
    await this.model.awaited;
    this.said(want);
  }

  /** What was wanted is on the screen, whatever came of it. */
  said(want) {
    if (this.wanted().key !== want.key) return;
    if (!this.dataset.shown) performance.mark("orchestra-usable");
    this.dataset.shown = want.key;
  }

  wanted() {
    const { model } = this;
    const to = { run: model.run, seq: model.selected };
    const pinned = model.pinned && !(model.pinned.run === to.run && model.pinned.seq === to.seq) ? model.pinned : null;
    const key = model.tab === "talk" ? `talk ${to.seq} ${model.talks.speaker}` : `${model.tab} ${to.seq} ${pinned ? `${pinned.run}@${pinned.seq}` : ""}`;
    return { tab: model.tab, to, pinned, key };
  }

  peek({ tab, to, pinned }) {
    const { model } = this;
    const diff = pinned ? model.diffs.peek(`${pinned.run}@${pinned.seq} ${to.run}@${to.seq}`) : model.changed.peek(to.seq);
    if (!diff || tab === "changes") return diff ? { diff } : null;
    const from = pinned ?? diff.from;
    const before = tab === "after" || !from ? null : model.peekState(from.run, from.seq);
    const after = tab === "before" ? null : model.peekState(to.run, to.seq);
    const lacks = (tab !== "after" && from && !before) || (tab !== "before" && !after);
    return lacks ? null : { diff, before, after };
  }

  wait(want) {
    clearTimeout(this.slow);
    this.slow = setTimeout(() => this.panel.setAttribute("aria-busy", "true"), SLOW_MS);
    this.model.awaited = this.latest.want(async () => {
      try {
        const found = await this.fetch(want);
        if (this.wanted().key === want.key) this.show(want, found);
      } catch (failure) {
        if (this.wanted().key === want.key) this.fail(failure);
      }
      this.said(want);
    });
  }

  async fetch({ tab, to, pinned }) {
    const { model } = this;
    const asked = pinned ? model.diff(pinned, to) : model.changesOf(to.seq);
    if (tab === "changes") return { diff: await asked };
    const after = tab === "before" ? null : model.state(to.run, to.seq);
    const diff = await asked;
    const from = pinned ?? diff.from;
    const before = tab === "after" || !from ? null : await model.state(from.run, from.seq);
    return { diff, before, after: await after };
  }

  fail(failure) {
    this.settle();
    this.tree.hidden = true;
    this.heads.hidden = true;
    this.message.hidden = false;
    say(this.summary, "");
    replace(this.message, trouble(failure, () => this.refresh()));
  }

  say(text) {
    this.settle();
    this.tree.hidden = true;
    this.heads.hidden = true;
    this.message.hidden = false;
    replace(this.message, h("p", { class: "loading", text }));
  }

  settle() {
    clearTimeout(this.slow);
    this.panel.removeAttribute("aria-busy");
  }

  show(want, { diff, before, after }) {
    this.settle();
    const from = want.pinned ?? diff.from;
    this.sides = { from, to: want.to };
    this.diff = diff;
    this.states = { before: before?.value, after: after?.value };
    this.touched = touchedPaths(diff.changes);
    const { counts, truncated } = diff;
    say(this.summary, told(counts, truncated));
    if (want.tab === "changes" && !diff.changes.length) {
      this.say(from ? "Nothing in the state changed." : "This is where the run begins.");
      say(this.summary, "");
      return;
    }
    if (want.tab === "before" && !from) {
      this.say("There is nothing before the first snapshot.");
      return;
    }
    this.plant(want.tab);
    this.message.hidden = true;
    this.tree.hidden = false;
    this.tree.show(this.branches[want.tab], MODES[want.tab]);
    this.tree.choose(this.model.path);
    this.reread(want.tab);
  }

  plant(tab) {
    this.heads.hidden = tab !== "sides";
    if (tab === "changes") {
      this.branches.changes.plant(ordered(this.diff.changes).map(changeRoot));
    } else if (tab === "sides") {
      const name = (ref) => (ref ? (ref.run === this.model.run ? `#${ref.seq}` : `${ref.run}@${ref.seq}`) : "nothing");
      const a = this.model.pinned ? "A" : "Before";
      replace(this.heads, h("span", {}), this.narrow, h("b", { text: `${a} ${name(this.sides.from)}` }), h("b", { text: `${this.model.pinned ? "B" : "After"} ${name(this.sides.to)}` }));
      this.plantSides();
    } else {
      const value = tab === "before" ? this.states.before : this.states.after;
      this.branches[tab].plant(oneRoots(value, (path) => this.branches[tab].touched(path)));
    }
  }

  plantSides() {
    const { sides } = this.branches;
    const roots = sides.children({ path: [], a: this.states.before, b: this.states.after, sign: "" });
    sides.plant(roots);
  }

  /** What is open but left out of the answer is asked for again. */
  async reread(tab) {
    const branches = this.branches[tab];
    const lazy = branches.lines().filter((line) => line.open && (isLazy(line.a) || isLazy(line.b)));
    if (!lazy.length) return;
    await Promise.all(lazy.map((line) => branches.open(line)));
    if (this.tree.branches === branches) this.tree.renew();
  }
}

function told({ added, removed, changed }, truncated) {
  const parts = [
    changed && `${count(changed, "changed", "changed")}`,
    added && `${count(added, "added", "added")}`,
    removed && `${count(removed, "removed", "removed")}`,
  ].filter(Boolean);
  return parts.join(" · ") + (truncated ? " · the rest is left out" : "");
}

/** What is only kept by the way comes last. */
function ordered(changes) {
  return [...changes].sort((a, b) => aside(a) - aside(b));
}

function aside({ path }) {
  if (path[0] === "metrics") return 1;
  return path[path.length - 1] === "updated_at" ? 2 : 0;
}

const SIGNS = { added: "+", removed: "−", changed: "~" };

function changeRoot({ path, text, kind, before, after }) {
  const a = kind === "added" ? undefined : before;
  const b = kind === "removed" ? undefined : after;
  return { path, label: text, a, b, sign: SIGNS[kind] };
}

function oneRoots(value, sign) {
  const kind = kindOf(value);
  if (kind !== "object" && kind !== "array") return [{ path: [], label: "", a: undefined, b: value, sign: "" }];
  return entriesOf(value).map(([step, each]) => {
    const label = typeof step === "number" ? `[${step}]` : step;
    return { path: [step], label, a: undefined, b: each, sign: sign([step]) };
  });
}

/** The places that changed, and every place that holds one. */
function touchedPaths(changes) {
  const found = new Map();
  for (const { path, kind } of changes) {
    for (let n = 1; n < path.length; n += 1) found.set(JSON.stringify(path.slice(0, n)), "~");
    found.set(JSON.stringify(path), SIGNS[kind]);
  }
  return found;
}

customElements.define("orchestra-state", State);
