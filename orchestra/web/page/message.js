/**
 * One message of a conversation: who speaks, what is said and called, what it took, and the moment it is.
 *
 * It is shown again in place when it has grown: what somebody opened stays open, and nothing around it moves. What a
 * model or a tool said becomes text nodes.
 */

import { answerWord, lacks, openAnswer } from "./answering.js";
import { openFork } from "./dialogs.js";
import { button, h, replace, say } from "./dom.js";
import { canAct } from "./fields.js";
import { brief, compact, count, duration, form, instant, money, number, time } from "./format.js";
import { link } from "./route.js";

const SHORT = 100;
const FOLDED = 600;
const WHOLE_BYTES = 4 * 1024 * 1024;
const STATUSES = { streaming: ["●", "accent"], interrupted: ["◌", "warn"], error: ["✖", "bad"] };
const CALLS = {
  asked: ["○", "not called yet", "dim"],
  waiting: ["?", "waits for approval", "warn"],
  started: ["●", "at work", "accent"],
  done: ["✔", "done", "good"],
  failed: ["✖", "failed", "bad"],
  refused: ["⊘", "refused", "warn"],
};
const ENDINGS = new Set(["", "stop", "tool_call"]);

/** A message as an entry of a list. */
export class MessageRow {
  parts = [];
  shown = "";

  constructor(model) {
    this.model = model;
    this.task = h("p", { class: "said-task dim" });
    this.by = h("div", { class: "said-by" });
    this.body = h("div", { class: "said" });
    this.foot = h("p", { class: "said-facts" });
    this.node = h("li", { class: "message" }, this.task, this.by, this.body, this.foot);
  }

  /** Show the message as it is now. `before` is the one above it. */
  show(message, before) {
    const text = JSON.stringify([message, before?.task, before?.round]);
    if (text !== this.shown) {
      this.shown = text;
      this.message = message;
      const { role, status, superseded } = message;
      Object.assign(this.node.dataset, { role, status, superseded });
      say(this.task, message.task && message.task !== before?.task ? message.task : "");
      replace(this.by, ...speaker(message), moment(this.model, message));
      this.#showParts(message);
      replace(this.foot, ...facts(message));
    }
    for (const part of this.parts) part.renew?.();
  }

  #showParts(message) {
    message.parts.forEach((part, at) => {
      if (this.parts[at]?.kind !== part.kind) {
        this.parts[at]?.node.remove();
        this.parts[at] = viewOf(part, message, this.model);
        this.body.insertBefore(this.parts[at].node, this.body.children[at] ?? null);
      }
      this.parts[at].show(part, message);
    });
    for (const gone of this.parts.splice(message.parts.length)) gone.node.remove();
    this.node.classList.toggle("silent", !message.parts.length);
  }

  /** The names of the questions that are asked beside its calls. */
  get questions() {
    return this.message.parts.flatMap((part) => part.call?.questions.map((each) => each.wait) ?? []);
  }
}

function speaker({ role, step, round, stands_for: gone = [] }) {
  const sums = gone.length ? `sums up ${count(gone.length, "message")}` : "";
  const told = [role === "assistant" && step ? `step ${step}` : "", sums, round > 1 ? `round ${round}` : ""].filter(Boolean).join(", ");
  return [h("h3", { class: "said-role", text: role }), told ? h("p", { class: "said-step dim", text: told }) : null];
}

/** How it ended where that is not plain, and what it took. */
function* facts({ status, superseded, compacted, model, generation: used }) {
  const [sign, tone] = STATUSES[status] ?? [];
  if (sign) yield fact(status, tone, sign);
  if (superseded) yield fact("superseded", "warn", "↻", "It was said again, or is no part of what follows");
  if (compacted) yield fact("summed up since", "dim", "", "The model no longer sees it: a summary stands for it");
  if (used?.model ?? model) yield fact(used?.model ?? model, "dim");
  if (!used || status !== "complete") return;
  yield fact(`${number(used.tokens_in)} in, ${number(used.tokens_out)} out`, "dim", "", "Tokens that went in and came out");
  if (used.cache_read) yield fact(`${compact(used.cache_read)} cached`, "dim", "", "Tokens of those that went in that came from the cache");
  yield used.cost_micros === null ? fact("no known price", "dim") : fact(money(used.cost_micros), "dim", "", "What it cost");
  yield fact(duration(used.latency_us), "dim", "", "How long the answer took");
  if (!ENDINGS.has(used.finish)) yield fact(`ended by ${used.finish}`, "warn", "!");
}

function fact(text, tone, sign = "", title = "") {
  return h("span", { class: `fact tone-${tone}`, title: title || null }, sign ? h("span", { class: "sign", aria: { hidden: "true" }, text: sign }) : null, text);
}

/** The snapshot in which it got its last words: to go to, and to fork from. */
function moment(model, { snapshot, updated_at: at }) {
  if (!snapshot) return null;
  const { run, seq } = snapshot;
  if (run !== model.run) {
    const there = { href: link("run", run, { at: String(seq), tab: "talk" }), data: { route: "run" }, title: `Said in ${run}, ${instant(at)}` };
    return h("p", { class: "said-moment" }, h("a", there, `${run}@${seq}`));
  }
  const go = h("button", { type: "button", class: "link num", title: `Go to snapshot ${seq}: said ${instant(at)}`, text: `#${seq}`, on: { click: () => model.select(seq, { why: "jump" }) } });
  const fork = canAct(model) ? h("button", { type: "button", class: "link", aria: { label: `Fork from snapshot ${seq}` }, title: "A new run that goes on from here", text: "fork…", on: { click: () => openFork(model, seq) } }) : null;
  return h("p", { class: "said-moment" }, go, fork);
}

// --- the parts of a message

function viewOf(part, message, model) {
  if (part.call) return new CallView(model);
  if (part.kind === "answer") return new Form();
  if (part.kind === "reasoning") return new Words(model, "Reasoning", "said-reasoning");
  if (part.kind !== "text") return new Other(model, part.kind);
  const folds = message.role === "system" ? "Instructions" : message.role !== "assistant" && sizeOf(part.text) > FOLDED ? "Text" : "";
  return new Words(model, folds, folds ? "said-folded" : "said-text");
}

function sizeOf(text) {
  return typeof text === "string" ? text.length : (text.$cut?.size ?? 0);
}

/** A text that may grow; with a name it is folded. */
class Words {
  held = "";

  constructor(model, name, look) {
    this.model = model;
    this.kind = look === "said-reasoning" ? "reasoning" : "text";
    this.name = name;
    this.text = document.createTextNode("");
    this.words = h("div", { class: look }, this.text);
    this.more = h("p", { hidden: true });
    this.size = h("span", { class: "dim" });
    this.node = name ? h("details", { class: "folded" }, h("summary", {}, h("span", { text: name }), this.size), this.words, this.more) : h("div", {}, this.words, this.more);
  }

  show({ text, path }) {
    const cut = form(text)?.name === "$cut" ? text.$cut : null;
    if (this.whole === JSON.stringify(text)) return;
    this.whole = null;
    this.#put(cut ? `${cut.text}…` : text);
    if (this.name) say(this.size, preview(cut?.text ?? text, cut?.size));
    this.more.hidden = !cut;
    if (cut) replace(this.more, button(`Show all ${number(cut.size)} characters`, () => this.#open(text, path), { class: "link" }));
  }

  /** Only what is new is added, so that what somebody has marked stays marked. */
  #put(text) {
    if (text === this.held) return;
    if (text.startsWith(this.held)) this.text.appendData(text.slice(this.held.length));
    else this.text.data = text;
    this.held = text;
  }

  async #open(text, path) {
    try {
      const { value } = await this.model.source.state(this.model.run, this.model.selected, path, { budget: WHOLE_BYTES });
      this.whole = JSON.stringify(text);
      this.#put(typeof value === "string" ? value : `${value.$cut.text}…`);
      this.more.hidden = true;
    } catch (failure) {
      replace(this.more, h("span", { class: "tone-bad", text: failure.message }));
    }
  }
}

function preview(text, size) {
  const words = text.trim() ? text.trim().split(/\s+/).length : 0;
  return size ? `${number(size)} characters` : count(words, "word");
}

/** An answer in a form: a line for each of its fields. */
class Form {
  kind = "answer";
  node = h("dl", { class: "said-form" });

  show({ data }) {
    const fields = Object.entries(fieldsOf(data?.arguments));
    replace(this.node, ...fields.flatMap(([name, value]) => [h("dt", { text: name }), h("dd", { text: typeof value === "string" ? value : brief(value, FOLDED) })]));
  }
}

function fieldsOf(held) {
  let value = form(held)?.name === "$cut" ? `${held.$cut.text ?? ""}…` : held;
  try {
    if (typeof value === "string") value = JSON.parse(value);
  } catch {} // it never had the form it should have
  return value && typeof value === "object" && !Array.isArray(value) ? value : { answer: value ?? "" };
}

/** What is neither text nor a call: an error, or data that a provider sends along. */
class Other {
  constructor(model, kind) {
    this.kind = kind;
    this.node = h("div", { class: "said-other" });
  }

  show({ kind, text, data }) {
    const error = data && typeof data === "object" ? data.error : null;
    if (typeof error === "string") replace(this.node, h("p", { class: "tone-bad" }, h("span", { class: "sign", aria: { hidden: "true" }, text: "✖" }), error));
    else replace(this.node, h("p", { class: "dim" }, `${kind.replace("_", " ")}: `, h("code", { text: text || brief(data, 400) })));
  }
}

/** A tool call: with what, how it stands, what came of it, and who let it run. */
class CallView {
  constructor(model) {
    this.model = model;
    this.kind = "tool_call";
    this.tool = h("code", { class: "call-tool" });
    this.status = h("span", { class: "call-status" });
    this.given = new Held(model, "→", "called with");
    this.got = new Held(model, "←", "answered");
    this.asked = h("div", { class: "call-asked" });
    this.node = h("div", { class: "call" }, h("p", { class: "call-head" }, this.tool, this.status), this.given.node, this.got.node, this.asked);
  }

  show({ call, path }) {
    const { status, tool, name, attempts, risky, started_at: began, ended_at: ended } = call;
    const [sign, word, tone] = CALLS[status];
    this.call = call;
    this.node.dataset.status = status;
    say(this.tool, tool);
    const took = began && ended && status !== "refused" ? duration(ended - began) : "";
    const more = [took, attempts > 1 ? `begun ${count(attempts, "time")}` : "", risky ? "risky" : ""].filter(Boolean);
    replace(this.status, fact(word, tone, sign), ...more.map((text) => fact(text, "dim")));
    this.given.show(call.arguments, name ? ["tool_calls", name, "arguments"] : [...path.slice(0, 4), "data", "arguments"]);
    this.got.node.hidden = status !== "done" && !call.error;
    this.got.node.classList.toggle("tone-bad", status === "failed");
    this.got.show(call.error || call.result, ["tool_calls", name, call.error ? "error" : "result"]);
  }

  /** What was asked about it; open questions can be answered at the end of the run alone. */
  renew() {
    const state = JSON.stringify([this.call.questions, canAct(this.model), this.model.selected === this.model.info?.head, openWaits(this.model).map((wait) => wait.wait)]);
    if (state === this.said) return;
    this.said = state;
    replace(this.asked, ...this.call.questions.map((each) => asked(this.model, each)));
  }
}

function asked(model, question) {
  const wait = openWaits(model).find((each) => each.wait === question.wait);
  if (question.status === "open") return wait ? questionBox(model, wait) : h("p", { class: "dim", text: question.text });
  const [sign, tone, said] = answered(question.answer);
  return h("p", { class: "call-answer dim", title: question.text }, h("span", { class: `sign tone-${tone}`, aria: { hidden: "true" }, text: sign }), `${said}, ${time(question.closed_at)}`);
}

function answered(answer) {
  if (answer === "approve") return ["✔", "good", "approved by a person"];
  if (answer === "refuse") return ["⊘", "warn", "refused by a person"];
  if (answer?.choice === "approve") return ["✎", "good", "approved by a person, with changed arguments"];
  return ["✎", "dim", `a person answered: ${typeof answer === "string" ? answer : brief(answer, SHORT)}`];
}

/** What the run waits for, as of its newest snapshot and only where that is looked at. */
export function openWaits(model) {
  return model.selected === model.info?.head ? (model.info.waits ?? []).filter((wait) => wait.status === "open") : [];
}

/** A question that is open, with the button that answers it. */
export function questionBox(model, wait) {
  const answer = () => openAnswer(model, wait);
  return h(
    "div",
    { class: "box tone-warn-box", role: "group", aria: { label: "Open question" } },
    h("p", { class: "wait-text" }, h("span", { class: "sign tone-warn", aria: { hidden: "true" }, text: "?" }), wait.text),
    canAct(model) ? h("button", { type: "button", class: "button primary", text: answerWord(wait), on: { click: answer } }) : h("p", { class: "dim", text: "It can be answered with orchestra answer, or on a page that may change things." }),
  );
}

/** A value on a line; what is longer is folded, and what was left out is asked for when it is opened. */
class Held {
  constructor(model, sign, word) {
    this.model = model;
    this.mark = h("span", { class: "held-sign dim" }, h("span", { aria: { hidden: "true" }, text: sign }), h("span", { class: "offscreen", text: `${word} ` }));
    this.place = h("div", { class: "held-value" });
    this.node = h("div", { class: "held" }, this.mark, this.place);
    this.label = word;
  }

  show(value, path) {
    const text = JSON.stringify(value);
    if (text === this.text) return;
    this.text = text;
    this.path = path;
    const line = typeof value === "string" ? value : brief(value, SHORT + 1);
    const short = line.length <= SHORT && !line.includes("\n") && !lacks(value);
    replace(this.place, short ? h("code", { text: value === null ? "nothing" : line }) : this.#folded(value));
  }

  #folded(value) {
    const whole = h("pre", { class: "code", tabindex: "0", aria: { label: this.label }, text: written(value) });
    const line = form(value)?.name === "$cut" ? value.$cut.text : typeof value === "string" ? value : brief(value, SHORT * 2);
    const summary = h("summary", {}, h("code", { class: "cutoff", text: line.slice(0, SHORT * 2).replace(/\s+/g, " ") }));
    const toggled = (event) => event.target.open && lacks(value) && this.#load(whole);
    return h("details", { class: "folded", on: { toggle: toggled } }, summary, whole);
  }

  async #load(place) {
    const { text, path, model } = this;
    try {
      const { value } = await model.source.state(model.run, model.selected, path, { budget: WHOLE_BYTES });
      if (text === this.text) say(place, written(value));
    } catch (failure) {
      say(place, failure.message);
    }
  }
}

function written(value) {
  const cut = form(value)?.name === "$cut" ? value.$cut : null;
  if (cut?.text !== undefined) return `${cut.text}…\n(${number(cut.size)} characters)`;
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
