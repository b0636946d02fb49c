/**
 * The run page: strip, list, state and details around one model, and the commands that need more than the model.
 */

import { openAnswer } from "./answering.js";
import { CompareBar } from "./compare.js";
import "./details.js";
import { openFork, openNote, openResume, openRollback, togglePin } from "./dialogs.js";
import { announce, button, copy, h, replace, toast, trouble } from "./dom.js";
import { openFamily } from "./family.js";
import { fromParams } from "./filter.js";
import { COMMANDS, commandFor } from "./keys.js";
import "./list.js";
import { Live } from "./live.js";
import { pause } from "./lru.js";
import { RunModel, TABS } from "./model.js";
import { openHelp, openPalette } from "./palette.js";
import { link, permalink, settle } from "./route.js";
import { Speech } from "./speech.js";
import "./state.js";
import "./strip.js";
import { nextTheme } from "./themes.js";
import { TopBar } from "./topbar.js";
import { Transport } from "./transport.js";

const PANES = { list: "Snapshots", state: "State", details: "Details" };
const SETTLE_MS = 180;
const OUTLINE_MS = 150;

class Run extends HTMLElement {
  async connectedCallback() {
    this.onKey = (event) => this.pressed(event);
    document.addEventListener("keydown", this.onKey);
    replace(this, h("p", { class: "loading", role: "status", text: "Opening the run…" }));
    await this.open();
  }

  disconnectedCallback() {
    document.removeEventListener("keydown", this.onKey);
    this.live?.end();
    this.transport?.stop();
    clearTimeout(this.settling);
  }

  async open() {
    const model = new RunModel(this.source, this.run);
    try {
      const [server] = await Promise.all([this.source.info(), model.open(this.params)]);
      model.server = server;
    } catch (failure) {
      if (this.isConnected) this.failed(failure);
      return;
    }
    if (!this.isConnected) return;
    this.model = model;
    this.build();
    this.bar.search.recall(this.params);
    this.live = new Live(model);
    this.live.start();
    await Promise.race([model.changesOf(model.selected).catch(() => {}), pause(OUTLINE_MS)]);
    await model.readOutline();
    model.prefetchSoon();
  }

  failed(failure) {
    const home = h("p", {}, h("a", { href: link("runs"), data: { route: "" } }, "All runs"));
    replace(this, h("div", { class: "alone" }, trouble(failure, () => this.open()), home));
    document.title = "orchestra";
  }

  // --- layout

  build() {
    const { model } = this;
    this.bar = new TopBar(model, this);
    this.strip = withModel("orchestra-strip", model);
    this.transport = new Transport(model);
    this.transport.onScale = () => this.strip.toggleScale();
    this.list = withModel("orchestra-list", model);
    this.state = withModel("orchestra-state", model);
    this.details = withModel("orchestra-details", model);
    this.speech = new Speech(model);
    this.compare = new CompareBar(model);
    this.notice = h("div", { class: "notice", role: "alert", hidden: true });
    const middle = h("div", { class: "pane pane-state" }, this.state, this.speech.node);
    const panes = h("div", { class: "panes" }, pane("list", this.list), middle, pane("details", this.details));
    this.panes = panes;
    replace(this, this.bar.node, this.notice, h("div", { class: "strip-area" }, this.strip, this.transport.node), this.paneTabs(), panes, this.compare.node);
    this.showPane("state");
    this.listen();
    if (model.astray) this.warn(`There is no snapshot ${model.astray} in this run: the nearest is shown.`);
    document.title = `${model.run} · orchestra`;
  }

  /** On narrow screens one pane is shown at a time. */
  paneTabs() {
    this.tabs = Object.entries(PANES).map(([name, text]) =>
      h("button", { type: "button", role: "tab", class: "tab", data: { pane: name }, text, on: { click: () => this.showPane(name) } }),
    );
    return h("div", { class: "pane-tabs", role: "tablist", aria: { label: "Panes" } }, ...this.tabs);
  }

  showPane(name) {
    this.panes.dataset.shown = name;
    for (const tab of this.tabs) tab.setAttribute("aria-selected", String(tab.dataset.pane === name));
  }

  listen() {
    const { model } = this;
    for (const type of ["select", "filter", "tab", "pin", "path", "marks", "follow"]) {
      model.on(type, () => this.settleSoon());
    }
    model
      .on("select", ({ why }) => why !== "follow" && why !== "play" && this.speak())
      .on("headlines", () => this.unsaid === model.selected && model.headlines.get(this.unsaid) && this.tellSelected())
      .on("marks", () => this.bar.search.renew())
      .on("outline", () => (this.dataset.outline = String(model.outline.upto)))
      .on("select", () => this.bar.search.renew())
      .on("tab", () => this.showPane("state"))
      .on("gone", () => this.warn("This run was deleted while it was open. What was read before can still be looked at.", true))
      .on("failure", ({ failure }) => this.warn(failure.message));
  }

  warn(text, last = false) {
    if (this.over) return;
    this.over = last;
    this.notice.hidden = false;
    if (last) this.live.end();
    replace(this.notice, h("span", { text }), button("Dismiss", () => (this.notice.hidden = true), { sign: "×", class: "quiet" }));
  }

  /** Say which snapshot is chosen, once the keys rest; and what happened there as soon as that is known. */
  speak() {
    clearTimeout(this.speaking);
    this.unsaid = null;
    this.speaking = setTimeout(() => this.tellSelected(), 400);
  }

  tellSelected() {
    const { selected, headlines } = this.model;
    const headline = headlines.get(selected);
    this.unsaid = headline ? null : selected;
    announce(headline ? `Snapshot ${selected}: ${headline.main}` : `Snapshot ${selected}`);
  }

  // --- address

  settleSoon() {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => settle("run", this.model.run, this.model.params()), SETTLE_MS);
  }

  /** Another address of the same run. */
  async moveTo(params) {
    const { model } = this;
    if (!model) return;
    model.setFilter(fromParams(params));
    model.talks.who = params.get("who");
    model.setTab(TABS.includes(params.get("tab")) ? params.get("tab") : "changes");
    model.select(await model.place(params.get("at")), { why: "link" });
  }

  // --- keys

  pressed(event) {
    if (!this.model) return;
    const command = commandFor(event);
    if (command) {
      event.preventDefault();
      this.invoke(command);
    }
  }

  async invoke(command) {
    if (command.when && !command.when(this.model)) {
      const said = NOT_NOW[command.id];
      if (said) toast(said);
      return;
    }
    const said = await command.run(this.model, this);
    if (typeof said === "string") toast(said);
  }

  // --- commands

  play() {
    this.transport.play();
  }

  search() {
    this.bar.search.focus();
  }

  valueChange(forward) {
    return this.state.value.change(forward);
  }

  blame() {
    this.showPane("state");
    this.state.value.blame();
  }

  pinA() {
    const { model } = this;
    const here = { run: model.run, seq: model.selected };
    const same = model.pinned?.run === here.run && model.pinned?.seq === here.seq;
    model.pin(same ? null : here);
    return same ? "A let go" : `#${here.seq} is A: move to compare with it`;
  }

  diff() {
    const { model } = this;
    model.setTab(model.tab === "changes" ? "sides" : "changes");
    this.showPane("state");
  }

  /** Whose it is, what was said; the arrows up and down scroll in it. */
  talk(who) {
    this.model.talks.open(who);
    this.showPane("state");
    this.state.talk.scroll.focus({ preventScroll: true });
  }

  dialog(name) {
    const { model } = this;
    const at = model.selected;
    const open = {
      fork: () => openFork(model, at),
      resume: () => openResume(model),
      rollback: () => openRollback(model, at),
      keep: () => togglePin(model, at),
      note: () => openNote(model, at),
    };
    open[name]();
  }

  answer() {
    const wait = (this.model.info.waits ?? []).find((each) => each.status === "open");
    if (wait) openAnswer(this.model, wait);
  }

  family() {
    openFamily(this.model);
  }

  copyLink() {
    copy(permalink("run", this.model.run, this.model.params()), "Link");
  }

  theme() {
    nextTheme();
  }

  palette() {
    const now = COMMANDS.filter((command) => command.id !== "palette" && (!command.when || command.when(this.model)));
    openPalette(now, (command) => this.invoke(command));
  }

  help() {
    openHelp();
  }

  /** Step back from whatever is open: value, hits, A. */
  escape() {
    const { model } = this;
    if (model.path !== null) model.setPath(null);
    else if (model.marks.kind) this.bar.search.clear();
    else if (model.pinned) model.pin(null);
    else if (model.follow) model.setFollow(false);
    else document.activeElement?.blur();
  }

  askNumber() {
    const input = h("input", { type: "number", min: "0", max: String(this.model.newest), aria: { label: "Number of the snapshot" } });
    const form = h("form", { method: "dialog" }, h("label", { class: "go-label" }, "Go to snapshot ", input), h("button", { class: "primary" }, "Go"));
    const dialog = h("dialog", { class: "go-dialog", aria: { label: "Go to a snapshot" } }, form);
    form.addEventListener("submit", () => input.value !== "" && this.model.select(Number(input.value), { why: "jump" }));
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
    input.focus();
  }
}

const NOT_NOW = {
  hit: "Search first: press /",
  "hit-before": "Search first: press /",
  change: "Select a value in the state first",
  "change-before": "Select a value in the state first",
  blame: "Select a value in the state first",
  talk: "No agent of this run has talked to a language model",
  fork: "This page is read-only",
  resume: "This page is read-only",
};

function withModel(tag, model) {
  const node = document.createElement(tag);
  node.model = model;
  return node;
}

function pane(name, ...children) {
  return h("div", { class: `pane pane-${name}` }, ...children);
}

customElements.define("orchestra-run", Run);
