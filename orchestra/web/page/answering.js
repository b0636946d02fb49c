/**
 * What a run waits for is given here: an answer, leave for a tool call, a word that something is there.
 *
 * Nothing is chosen beforehand. What a question lets people change, such as the arguments of a call, is JSON to edit.
 */

import { Dialog } from "./dialog.js";
import { h, replace, toast } from "./dom.js";
import { check, field, refused } from "./fields.js";
import { form, words } from "./format.js";
import { isLazy } from "./forms.js";

const WHOLE_BYTES = 4 * 1024 * 1024;

/** Answer what the run waits for. */
export function openAnswer(model, wait) {
  if (refused(model)) return Promise.resolve(null);
  if (wait.kind === "dependency") return provide(model, wait);
  const answer = answering(model, wait);
  const play = going(model);
  const asked = h("p", { class: "question", text: wait.text });
  const who = wait.agent ? h("p", { class: "dim", text: `asked by ${wait.agent}` }) : null;
  const dialog = new Dialog({
    title: wait.kind === "breakpoint" ? "Let it go on" : "Answer",
    confirm: wait.kind === "breakpoint" ? "Go on" : "Answer",
    wide: Boolean(answer.wide),
    ready: answer.ready(),
    body: [asked, who, answer.details ?? handedIn(wait.details), answer.node, play.node],
    submit: async () => {
      const done = await model.source.act(model.run, "answer", { wait: wait.wait, value: answer.value(), play: play.wanted() });
      toast(done.playing ? "Answered, and the run goes on" : "Answered");
      if (model.tab === "talk") model.setFollow(true);
      return done;
    },
  });
  answer.watch?.(() => dialog.ready(answer.ready()));
  return dialog.show();
}

/** Whether the run is to be played here once it can go on; nothing to choose where somebody plays it. */
function going(model) {
  if (model.info?.owned) return { node: null, wanted: () => false };
  const play = check("Go on with the run here at once", true);
  return { node: play.node, wanted: () => play.input.checked };
}

/** What was handed in with a question, for whoever is to answer it. */
function handedIn(details) {
  if (details === null || details === undefined) return null;
  const text = typeof details === "string" ? details : JSON.stringify(details, null, 2);
  return h("pre", { class: "code", tabindex: "0", aria: { label: "Details" }, text });
}

function answering(model, wait) {
  if (wait.kind === "breakpoint") return { node: null, value: () => true, ready: () => true };
  if (!wait.choices?.length) {
    const typed = field("Your answer", "", { multi: true, autofocus: true });
    return { node: typed.node, value: () => typed.input.value, ready: () => true };
  }
  const names = editable(wait.details);
  return names.length ? new Approval(model, wait, names) : new Choice(wait.choices);
}

/** What of the details an answer may change. */
function editable(details) {
  const names = details?.editable?.$tuple ?? details?.editable;
  return Array.isArray(names) ? names.filter((name) => Object.hasOwn(details, name)) : [];
}

/** One of the choices; none of them is chosen before somebody does. */
class Choice {
  constructor(choices) {
    this.inputs = choices.map((value, at) => h("input", { type: "radio", name: "choice", value, required: true, autofocus: at === 0 }));
    const rows = this.inputs.map((input) => h("label", { class: "choice" }, input, h("span", { text: input.value })));
    this.node = h("fieldset", { class: "choices" }, h("legend", { class: "offscreen", text: "Choices" }), ...rows);
  }

  get chosen() {
    return this.inputs.find((input) => input.checked)?.value;
  }

  ready() {
    return this.chosen !== undefined;
  }

  value() {
    return this.chosen;
  }

  watch(moved) {
    this.node.addEventListener("change", moved);
  }
}

/** Leave for a tool call: a choice, and the arguments, which may be changed on the way. */
class Approval extends Choice {
  wide = true;

  constructor(model, wait, names) {
    super(wait.choices);
    const { tool } = wait.details;
    this.lines = names.map((name) => new Editable(name, wait.details[name]));
    const title = typeof tool === "string" ? h("p", { class: "approval-tool" }, h("span", { class: "label", text: "Tool" }), h("code", { text: tool })) : null;
    this.said = h("p", { class: "dim", role: "status", text: "What is changed here is what the tool is called with." });
    this.details = h("div", { class: "approval" }, title, ...this.lines.map((line) => line.node), this.said);
    for (const line of this.lines) line.load(model, ["waits", wait.wait, "details"]);
  }

  /** The answers to a question are told apart by their first: that is the one that lets the tool run. */
  get allows() {
    return this.chosen === this.inputs[0].value;
  }

  ready() {
    return super.ready() && (!this.allows || this.lines.every((line) => !line.problem));
  }

  value() {
    const changed = this.lines.filter((line) => line.changed);
    if (!this.allows || !changed.length) return this.chosen;
    return { choice: this.chosen, ...Object.fromEntries(changed.map((line) => [line.name, line.value])) };
  }

  watch(moved) {
    super.watch(moved);
    this.details.addEventListener("input", () => {
      const changed = this.lines.some((line) => line.changed);
      this.said.textContent = changed ? "Changed: if you allow it, the tool is called with what stands here." : "What is changed here is what the tool is called with.";
      moved();
    });
  }
}

/** A value as JSON that somebody may change. */
class Editable {
  constructor(name, held) {
    this.name = name;
    this.box = field(words(name[0].toUpperCase() + name.slice(1)), "", { multi: true });
    this.trouble = h("p", { class: "value-problem", role: "alert", hidden: true });
    this.node = h("div", {}, this.box.node, this.trouble);
    this.box.input.classList.add("mono");
    this.box.input.addEventListener("input", () => this.#read());
    this.#take(held);
  }

  get changed() {
    return !this.box.input.readOnly && JSON.stringify(this.value) !== this.was;
  }

  /** What was too long to come along is asked for. */
  async load(model, path) {
    if (!lacks(this.value)) return;
    try {
      const { value } = await model.source.state(model.run, "head", [...path, this.name], { budget: WHOLE_BYTES });
      this.#take(value);
    } catch {
      /* it stays as it is, to be read */
    }
  }

  #take(held) {
    this.value = held;
    this.was = JSON.stringify(held);
    const text = JSON.stringify(held, null, 2);
    const { input } = this.box;
    input.value = text;
    input.rows = Math.min(14, text.split("\n").length + 1);
    input.readOnly = lacks(held);
    if (input.readOnly) this.#say("This is too long to be shown whole, and so cannot be changed here.", false);
    else this.#say("");
  }

  #read() {
    try {
      const value = JSON.parse(this.box.input.value);
      const fits = kindOf(value) === kindOf(JSON.parse(this.was));
      this.#say(fits ? "" : `This must be ${kindOf(JSON.parse(this.was))}, as it was.`);
      if (fits) this.value = value;
    } catch (error) {
      this.#say(`This is not JSON: ${error.message.replace(/^JSON\.parse: /, "")}`);
    }
  }

  #say(problem, bad = true) {
    this.problem = bad ? problem : "";
    this.trouble.hidden = !problem;
    replace(this.trouble, problem);
    this.box.input.setAttribute("aria-invalid", String(Boolean(this.problem)));
  }
}

function kindOf(value) {
  if (Array.isArray(value)) return "an array";
  if (value === null || typeof value !== "object") return value === null ? "null" : `a ${typeof value}`;
  return form(value) ? "a form" : "an object";
}

/** Whether something of a value did not come along. */
export function lacks(value) {
  if (value === null || typeof value !== "object") return false;
  return isLazy(value) || Object.values(value).some(lacks);
}

function provide(model, wait) {
  const play = going(model);
  const dialog = new Dialog({
    title: "It is there now",
    confirm: "Go on",
    body: [h("p", { class: "question", text: wait.text }), h("p", { class: "dim", text: "Say so once it is there, for example once the key is set where the run is played. Its value is never sent from here." }), play.node],
    submit: () => model.source.act(model.run, "provide", { name: wait.text, play: play.wanted() }),
  });
  return dialog.show();
}

/** The word on the button that opens the dialog. */
export function answerWord(wait) {
  return wait.kind === "breakpoint" ? "Let it go on…" : wait.kind === "dependency" ? "It is there now…" : "Answer…";
}
