/**
 * The conversation of an agent with its language model, as it stood at the selected snapshot, or as it goes on.
 *
 * While the end is in sight it stays in sight; otherwise nothing moves. Stepping through the run replays what was said.
 */

import { announce, button, h, replace, say, trouble } from "./dom.js";
import { compact, count, money, number } from "./format.js";
import { Latest } from "./lru.js";
import { MessageRow, openWaits, questionBox } from "./message.js";

const NEAR_PX = 48;
const MANY = 400;
const MOST = 500;
const EARLIER = 60;

class Conversation extends HTMLElement {
  latest = new Latest();
  rows = new Map();
  first = null;
  shown = null;

  connectedCallback() {
    if (this.firstChild) return;
    const { model } = this;
    this.classList.add("talk");
    this.picker = h("select", { aria: { label: "Whose conversation" }, on: { change: () => model.talks.open(this.picker.value) } });
    this.who = h("b", { class: "cutoff" });
    this.figures = h("span", { class: "dim cutoff" });
    this.earlier = h("p", { class: "talk-earlier", hidden: true });
    this.list = h("ol", { class: "talk-list" });
    this.asks = h("div", { class: "talk-asks" });
    this.end = h("p", { class: "talk-end dim" });
    this.scroll = h("div", { class: "talk-scroll", tabindex: "0", role: "region", aria: { label: "Conversation" } }, this.earlier, this.list, this.asks, this.end);
    this.append(h("div", { class: "talk-head" }, this.picker, this.who, this.figures), this.scroll);
    model.on("run", () => this.hidden || this.renew());
  }

  /** Show the conversation at the selected snapshot; answers when nothing newer is wanted. */
  refresh() {
    return this.latest.want(() => this.load());
  }

  async load() {
    const { model } = this;
    const { selected: seq } = model;
    const who = model.talks.speaker;
    this.showHead();
    if (who === null) return this.clear("No agent of this run has talked to a language model.");
    const first = this.whose === who ? this.first : null;
    try {
      let found = await model.talks.at(seq, who, first, MOST);
      if (found.count && !found.messages.length) found = await model.talks.at(seq, who, null);
      if (model.selected === seq && model.talks.speaker === who) this.show(found, who);
    } catch (failure) {
      if (model.selected === seq) replace(this.scroll, trouble(failure, () => this.refresh()));
    }
  }

  clear(text) {
    this.rows.clear();
    replace(this.list);
    replace(this.asks);
    say(this.end, text);
  }

  // --- what is shown

  show(found, who) {
    const fresh = this.whose !== who;
    const before = this.scroll.scrollHeight - this.scroll.scrollTop;
    const follows = fresh || before - this.scroll.clientHeight < NEAR_PX;
    if (this.scroll.firstChild !== this.earlier) replace(this.scroll, this.earlier, this.list, this.asks, this.end);
    this.whose = who;
    this.told(found, fresh);
    this.shown = found;
    this.first = found.count - found.first > MANY && follows ? null : found.first;
    this.place(found.messages);
    this.renew();
    this.showEarlier(found);
    if (follows) this.scroll.scrollTop = this.scroll.scrollHeight;
    else if (this.keeps) this.scroll.scrollTop = this.scroll.scrollHeight - before;
    this.keeps = false;
  }

  /** Rows are known by the names of their messages, and stay where they are. */
  place(messages) {
    const kept = new Map();
    messages.forEach((message, at) => {
      const row = this.rows.get(message.message) ?? new MessageRow(this.model);
      kept.set(message.message, row);
      row.show(message, messages[at - 1]);
      if (this.list.children[at] !== row.node) this.list.insertBefore(row.node, this.list.children[at] ?? null);
    });
    while (this.list.children.length > messages.length) this.list.lastChild.remove();
    this.rows = kept;
  }

  /** Those who listen are told that an answer has come. */
  told(found, fresh) {
    const streamed = new Set(fresh ? [] : this.shown?.messages.filter((each) => each.status === "streaming").map((each) => each.message));
    const done = found.messages.find((each) => streamed.has(each.message) && each.status === "complete");
    if (done && this.model.follow) announce(`${done.agent} has answered`);
  }

  /** What depends on the run as it is now: its questions, and how far it goes on. */
  renew() {
    const { model, shown } = this;
    this.showHead();
    if (!shown) return;
    for (const row of this.rows.values()) for (const part of row.parts) part.renew?.();
    const beside = new Set([...this.rows.values()].flatMap((row) => row.questions));
    const open = openWaits(model).filter((wait) => [wait.agent, wait.task].includes(this.whose) && !beside.has(wait.wait) && wait.until === null);
    const names = JSON.stringify(open.map((wait) => wait.wait));
    if (names !== this.asks.dataset.waits) {
      this.asks.dataset.waits = names;
      replace(this.asks, ...open.map((wait) => questionBox(model, wait)));
    }
    this.showEnd(shown);
  }

  showHead() {
    const { model } = this;
    const names = model.talks.speakers;
    const several = names.length > 1;
    this.picker.hidden = !several;
    this.who.hidden = several;
    say(this.who, model.talks.speaker ?? "");
    if (this.picker.dataset.names !== names.join("\n")) {
      this.picker.dataset.names = names.join("\n");
      replace(this.picker, ...names.map((name) => h("option", { value: name, text: name })));
    }
    if (model.talks.speaker !== null) this.picker.value = model.talks.speaker;
    say(this.figures, this.shown ? figures(this.shown) : "");
  }

  showEarlier({ first }) {
    this.earlier.hidden = first === 0;
    if (first) replace(this.earlier, button(`${count(first, "earlier message")}`, () => this.goBack(), { class: "quiet" }));
  }

  goBack() {
    this.first = Math.max(0, this.shown.first - EARLIER);
    this.keeps = true;
    this.refresh();
  }

  showEnd({ seq, count: said }) {
    const { model } = this;
    const head = model.info?.head ?? seq;
    const all = model.info?.agents?.find((each) => each.agent === this.whose)?.messages ?? said;
    if (seq >= head) {
      say(this.end, said ? "" : `${this.whose} has not talked to a language model by now.`);
      return;
    }
    const more = all > said ? `, ${count(all - said, "message")} before the end` : "";
    const go = h("button", { type: "button", class: "link", text: "Go to the end", on: { click: () => model.select(model.newest, { why: "jump" }) } });
    replace(this.end, `${said ? "As it stood at" : "Nothing was said by"} #${number(seq)}${more}. `, go);
  }
}

function figures({ count: said, first, messages }) {
  const paid = messages.map((each) => each.generation).filter(Boolean);
  const tokens = paid.reduce((sum, each) => sum + each.tokens_in + each.tokens_out, 0);
  const cost = paid.reduce((sum, each) => sum + (each.cost_micros ?? 0), 0);
  const all = [count(said, "message"), tokens ? `${compact(tokens)} tokens` : "", cost ? money(cost) : ""];
  return first ? all[0] : all.filter(Boolean).join(" · ");
}

customElements.define("orchestra-conversation", Conversation);
