/**
 * What can be done to a run, each through a dialog that first says what it would mean: what runs again, what is kept,
 * what is paid again and what cannot be undone. Nothing is changed before the button is pressed.
 */

import { Dialog } from "./dialog.js";
import { h, replace, toast } from "./dom.js";
import { Values } from "./editor.js";
import { check, field, refused } from "./fields.js";
import { compact, money, number, words } from "./format.js";
import { go } from "./route.js";

const TYPING_MS = 350;
const SHOWN = 8;
const LONG = 6000;

// --- fork, roll back, resume: planned first

/** Begin a new run at a snapshot, with values changed. */
export function openFork(model, at) {
  if (refused(model)) return Promise.resolve(null);
  const plan = new Plan(model, "fork", at);
  const values = new Values(model, at, () => plan.later(values.valid ? values.changed : null));
  const reason = field("Why (for the record)", "");
  const play = check("Play the new run at once", true);
  const dialog = new Dialog({
    title: `Fork from snapshot ${number(at)}`,
    confirm: "Fork",
    wide: true,
    ready: false,
    body: [
      h("p", { class: "dialog-lead", text: "A new run begins here with the values below. This run is not touched." }),
      values.node,
      plan.node,
      h("div", { class: "dialog-row" }, reason.node, play.node),
    ],
    submit: async () => {
      const made = await model.source.act(model.run, "fork", { at, values: values.changed, play: play.input.checked, reason: reason.input.value });
      go("run", made.run);
      toast(play.input.checked ? `${made.run} is being played` : `${made.run} was made`);
      return made;
    },
  });
  plan.watch(dialog, () => values.valid);
  values.load();
  plan.ask({});
  return dialog.show();
}

/** Go back to an earlier snapshot of the same run. */
export function openRollback(model, at) {
  if (refused(model)) return Promise.resolve(null);
  const plan = new Plan(model, "rollback", at);
  const reason = field("Why (for the record)", "");
  const play = check("Go on from there at once", true);
  const dialog = new Dialog({
    title: `Roll back to snapshot ${number(at)}`,
    confirm: "Roll back",
    danger: true,
    ready: false,
    body: [
      h("p", { class: "dialog-lead", text: "One more snapshot is added with the state of that one. Nothing of the history is removed, so this can be undone by going back again." }),
      plan.node,
      h("div", { class: "dialog-row" }, reason.node, play.node),
    ],
    submit: async () => {
      const done = await model.source.act(model.run, "rollback", { to: at, reason: reason.input.value, play: play.input.checked });
      toast(`Back at snapshot ${number(at)}`);
      return done;
    },
  });
  plan.watch(dialog);
  plan.ask();
  return dialog.show();
}

/** Go on with a run that nobody plays. */
export function openResume(model) {
  if (refused(model)) return Promise.resolve(null);
  const plan = new Plan(model, "resume", "head");
  const accept = check("Go on although the workflow or its agents were changed since", false);
  const dialog = new Dialog({
    title: "Resume this run",
    confirm: "Resume",
    ready: false,
    body: [h("p", { class: "dialog-lead", text: "It goes on from its newest snapshot, in the process that serves this page." }), plan.node, accept.node],
    submit: async () => {
      const done = await model.source.act(model.run, "resume", { accept_changes: accept.input.checked });
      toast("The run goes on");
      return done;
    },
  });
  plan.watch(dialog);
  plan.ask();
  return dialog.show();
}

/** What an action would mean, asked of the server and shown. */
class Plan {
  #asked = 0;
  #timer = 0;
  #dialog = null;
  #fine = () => true;

  constructor(model, action, at) {
    this.model = model;
    this.action = action;
    this.at = at;
    this.node = h("div", { class: "plan", role: "status", aria: { live: "polite" } }, h("p", { class: "dim", text: "Working out what this would mean…" }));
  }

  /** The dialog whose button may be pressed once the plan is there and everything else is fine. */
  watch(dialog, fine = () => true) {
    this.#dialog = dialog;
    this.#fine = fine;
  }

  /** Ask again once typing has stopped; null when what was typed is not valid. */
  later(values) {
    this.#dialog.ready(false);
    clearTimeout(this.#timer);
    if (values !== null) this.#timer = setTimeout(() => this.ask(values), TYPING_MS);
  }

  async ask(values) {
    const asked = ++this.#asked;
    const long = values !== undefined && JSON.stringify(values).length > LONG;
    try {
      const found = await this.model.source.plan(this.model.run, this.action, this.at, long ? {} : values);
      if (asked !== this.#asked) return;
      replace(this.node, ...planned(found), long ? h("p", { class: "tone-warn", text: "This is without the changed values: they are too long to be asked about beforehand." }) : "");
      this.#dialog.fail("");
      this.#dialog.ready(this.#fine());
    } catch (failure) {
      if (asked !== this.#asked) return;
      replace(this.node);
      this.#dialog.fail(failure.message);
      this.#dialog.ready(false);
    }
  }
}

function planned(plan) {
  return [
    h("p", { class: "plan-sentence", text: plan.sentences?.[0] ?? "" }),
    listed("Runs again", "↻", "warn", plan.again),
    listed("Undone", "┊", "warn", plan.undone),
    listed("Kept", "✓", "good", plan.kept),
    listed("Cannot be undone", "!", "bad", plan.effects),
    paid(plan),
    plan.again?.length || plan.undone?.length ? null : h("p", { class: "dim", text: "Nothing that is done runs again: the workflow goes on from there." }),
  ].filter(Boolean);
}

function listed(title, sign, tone, names) {
  if (!names || !names.length) return null;
  const shown = names.slice(0, SHOWN).map((name) => h("li", { text: name }));
  if (names.length > SHOWN) shown.push(h("li", { class: "dim", text: `and ${number(names.length - SHOWN)} more` }));
  return h("div", { class: "plan-group" }, h("h3", {}, h("span", { class: `sign tone-${tone}`, aria: { hidden: "true" }, text: sign }), title, h("span", { class: "dim", text: ` ${number(names.length)}` })), h("ul", {}, ...shown));
}

function paid({ tokens, cost_micros: cost }) {
  if (!tokens && !cost) return null;
  const parts = [tokens ? `${compact(tokens)} tokens` : "", cost ? money(cost) : ""].filter(Boolean).join(", ");
  return h("p", { class: "plan-paid" }, h("span", { class: "label", text: "Paid again" }), `up to ${parts}`);
}

// --- notes, pins, tasks

/** Write, change or remove the note of a snapshot. */
export async function openNote(model, at) {
  if (refused(model)) return null;
  const { note } = await model.source.snapshot(model.run, at);
  const text = field("Note", note || "", { multi: true, autofocus: true });
  const dialog = new Dialog({
    title: `Note on snapshot ${number(at)}`,
    confirm: "Save",
    body: [text.node, h("p", { class: "dim", text: "An empty note removes it." })],
    submit: () => model.source.act(model.run, "note", { at, text: text.input.value }),
  });
  return dialog.show();
}

/** Pin a snapshot so that retention keeps it, or let it go. */
export async function togglePin(model, at) {
  if (refused(model)) return null;
  const { pin } = await model.source.snapshot(model.run, at);
  const done = await model.source.act(model.run, "pin", { at, on: pin === null, text: "" });
  toast(pin === null ? `Snapshot ${number(at)} is pinned` : `Snapshot ${number(at)} is not pinned any more`);
  return done;
}

/** Try a task that failed once more. */
export function openRetry(model, task) {
  if (refused(model)) return Promise.resolve(null);
  return simple(model, "retry", { task }, {
    title: "Try this task again",
    confirm: "Try again",
    lead: `${task} is given to its agent once more. What other tasks did stays as it is.`,
  });
}

/** Stop a run for now. */
export function openPause(model) {
  return orders(model, "pause", { title: "Pause this run", confirm: "Pause", lead: "What is running is stopped in order, nothing that was stored is lost. It can be resumed." });
}

/** Stop a run for good. */
export function openCancel(model) {
  return orders(model, "cancel", { title: "Cancel this run", confirm: "Cancel the run", cancel: "Keep it", danger: true, lead: "It is over then: it cannot be resumed, only forked." });
}

function orders(model, verb, said) {
  if (refused(model)) return Promise.resolve(null);
  const reason = field("Why (for the record)", "");
  return simple(model, verb, {}, said, reason);
}

function simple(model, verb, body, { title, confirm, lead, danger = false, cancel = "Cancel" }, reason) {
  const dialog = new Dialog({
    title,
    confirm,
    danger,
    cancel,
    body: [h("p", { class: "dialog-lead", text: lead }), reason?.node].filter(Boolean),
    submit: async () => {
      const done = await model.source.act(model.run, verb, reason ? { ...body, reason: reason.input.value } : body);
      toast(`${words(verb)}: sent`);
      return done;
    },
  });
  return dialog.show();
}
