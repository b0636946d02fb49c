/**
 * The details of the selected snapshot: what was decided and what was not, what happened, what went wrong, what it
 * cost, whether its bytes are proved, and what can be done from here.
 */

import { copy, h, replace } from "./dom.js";
import { answerWord, openAnswer } from "./answering.js";
import { openFork, openNote, openResume, openRetry, openRollback, togglePin } from "./dialogs.js";
import { canAct } from "./fields.js";
import { compact, confidence, cut, duration, instant, money, number, size, stackLines, standing, time, words } from "./format.js";
import { link } from "./route.js";
import { talkName } from "./talks.js";

const SETTLE_MS = 40;
const ENDED = new Set(["completed", "cancelled"]);
const BAD_TRIGGERS = new Set(["error_encountered", "failed"]);

class Details extends HTMLElement {
  #model = null;
  #decisions = null;
  #timer = 0;
  #shown = null;

  connectedCallback() {
    this.classList.add("details");
    if (!this.firstChild) this.#build();
    this.#listen(true);
    this.#select();
  }

  disconnectedCallback() {
    this.#listen(false);
    clearTimeout(this.#timer);
  }

  set model(model) {
    if (this.isConnected) this.#listen(false);
    this.#model = model;
    if (this.isConnected) {
      this.#listen(true);
      this.#select();
    }
  }

  get model() {
    return this.#model;
  }

  #build() {
    this.head = h("header", { class: "details-head" });
    this.body = h("div", { class: "details-body", tabindex: "0", role: "region", aria: { label: "Details of the snapshot" } });
    this.foot = h("footer", { class: "details-actions", role: "group", aria: { label: "Actions" } });
    replace(this, this.head, this.body, this.foot);
  }

  #handlers = {
    select: () => this.#select(),
    live: () => this.#moved(),
    run: () => this.#moved(),
  };

  #listen(on) {
    if (!this.#model) return;
    for (const [name, handler] of Object.entries(this.#handlers)) {
      if (on) this.#model.addEventListener(name, handler);
      else this.#model.removeEventListener(name, handler);
    }
  }

  // --- asking

  /** Something new is there: decisions may have come, and the end of the run may have moved on. */
  #moved() {
    this.#decisions = null;
    if (this.#shown) this.#show(this.#shown);
  }

  #select() {
    const model = this.#model;
    if (!model || !this.head) return;
    const seq = model.selected;
    if (seq === null || seq === undefined || seq < 0) return this.#empty();
    this.#title(seq);
    this.body.classList.add("stale");
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#ask(seq), SETTLE_MS);
  }

  async #ask(seq) {
    try {
      await this.#model.letPass();
      if (this.#model.selected !== seq) return;
      const found = await this.#model.detail(seq);
      if (this.#model.selected === seq) this.#show(found);
    } catch (failure) {
      if (this.#model.selected === seq) this.#failed(seq, failure);
    }
  }

  // --- showing

  #empty() {
    replace(this.head, h("h2", { text: "No snapshot" }));
    replace(this.body, h("p", { class: "dim", text: "Choose a snapshot on the strip or in the list." }));
    replace(this.foot);
  }

  #failed(seq, failure) {
    this.#shown = null;
    this.body.classList.remove("stale");
    this.#title(seq);
    replace(this.body, h("div", { class: "box tone-bad-box", role: "alert" }, h("strong", { text: "This snapshot cannot be shown." }), h("p", { text: failure.message })));
    replace(this.foot);
  }

  #title(seq, ...badges) {
    replace(this.head, h("h2", {}, "Snapshot ", h("span", { class: "num", text: number(seq) })), ...badges);
  }

  #show(snapshot) {
    this.#shown = snapshot;
    this.body.classList.remove("stale");
    this.#title(snapshot.seq, ...badges(snapshot));
    const top = this.body.scrollTop;
    this.decision = h("div", { class: "details-decision" });
    replace(this.body, ...this.#sections(snapshot));
    this.body.scrollTop = top;
    replace(this.foot, ...this.#buttons(snapshot));
    if (!snapshot.decisions.length) this.#earlierDecision(snapshot);
  }

  #sections(snapshot) {
    return [
      summary(snapshot),
      damage(snapshot),
      undone(snapshot),
      this.#failures(snapshot),
      this.#waits(snapshot),
      this.#decided(snapshot),
      events(snapshot, this.#model),
      remarks(snapshot),
      figures(snapshot),
      triggers(snapshot),
      identity(snapshot),
    ].filter(Boolean);
  }

  // --- decisions

  #decided(snapshot) {
    if (!snapshot.decisions.length) return this.decision;
    return section("Decision", ...snapshot.decisions.map((each) => decision(each)));
  }

  /** Where nothing was decided, the newest decision before it is what one wants to know. */
  async #earlierDecision(snapshot) {
    try {
      this.#decisions ??= this.#model.source.decisions(this.#model.run);
      const { decisions } = await this.#decisions;
      if (this.#shown !== snapshot) return;
      const before = decisions.filter((each) => each.seq <= snapshot.seq && !each.undone).at(-1);
      replace(this.decision, before ? this.#before(before) : section("Decision", h("p", { class: "dim", text: "Nothing was decided up to here." })));
    } catch (failure) {
      this.#decisions = null;
      if (this.#shown === snapshot) replace(this.decision, section("Decision", h("p", { class: "dim", text: failure.message })));
    }
  }

  #before(found) {
    const jump = found.inherited ? "" : h("button", { type: "button", class: "link", text: `#${number(found.seq)}`, on: { click: () => this.#model.select(found.seq, { why: "decision" }) } });
    return section(["Latest decision, ", jump ? "at " : "before the fork", jump], decision(found));
  }

  // --- what went wrong, what is asked

  #failures(snapshot) {
    const tasks = snapshot.events.filter((event) => event.kind === "task_failed");
    const failed = tasks.length ? tasks : snapshot.events.filter((event) => event.kind === "run_ended" && event.what.startsWith("failed"));
    if (!failed.length) return null;
    return section("What went wrong", ...failed.map((event) => this.#failure(snapshot, event)));
  }

  #failure(snapshot, event) {
    const { task, error } = taken(event);
    const stack = h("details", { class: "stack", open: true }, h("summary", { text: "Where it failed" }), h("pre", { class: "code", text: "…" }));
    this.#stack(stack, snapshot, task ? ["tasks", task, "failure"] : ["failure"]);
    return h(
      "div",
      { class: "box tone-bad-box" },
      h("p", { class: "failure-who" }, h("span", { class: "sign tone-bad", aria: { hidden: "true" }, text: "✖" }), task || event.who || "the run"),
      h("p", { class: "failure-text", text: error }),
      stack,
      task && this.#acting && !ENDED.has(this.#standing) ? h("button", { type: "button", class: "button small", text: "Try this task again…", on: { click: () => openRetry(this.#model, task) } }) : null,
    );
  }

  async #stack(node, snapshot, path) {
    const place = node.querySelector("pre");
    try {
      const found = await this.#model.source.state(snapshot.run, snapshot.seq, path);
      place.textContent = stackText(found.value, this.#model.info?.environment?.working_dir);
    } catch (failure) {
      place.textContent = failure.message;
    }
  }

  #waits(snapshot) {
    if (snapshot.seq !== this.#head) return null;
    const open = (this.#model.info?.waits || []).filter((wait) => wait.status === "open");
    if (!open.length) return null;
    return section("Waits for", ...open.map((wait) => this.#wait(wait)));
  }

  #wait(wait) {
    const press = () => openAnswer(this.#model, wait);
    return h(
      "div",
      { class: "box tone-warn-box" },
      h("p", { class: "dim", text: [words(wait.kind), wait.agent].filter(Boolean).join(" · ") }),
      h("p", { class: "wait-text", text: wait.text }),
      this.#acting && wait.kind !== "timer" && wait.kind !== "rate_limit" ? h("button", { type: "button", class: "button primary", text: answerWord(wait), on: { click: press } }) : null,
    );
  }

  // --- actions

  get #acting() {
    return canAct(this.#model);
  }

  get #standing() {
    return this.#model.info?.standing || "";
  }

  get #head() {
    return this.#model.info?.head ?? -1;
  }

  #buttons(snapshot) {
    if (!this.#acting) return [h("p", { class: "dim", text: this.#model.source.bundle ? "A bundle: read-only." : "Read-only: nothing can be changed from here." })];
    const model = this.#model;
    const over = ENDED.has(this.#standing);
    const atHead = snapshot.seq === this.#head;
    const resumable = model.info?.resumable && !model.info?.owned;
    const changed = () => model.touch(snapshot.seq);
    return [
      action("Fork from here…", "f", () => openFork(model, snapshot.seq), { primary: true, off: snapshot.pruned && "Its content was pruned" }),
      action("Roll back to here…", "", () => openRollback(model, snapshot.seq), { off: (over && "The run is over: fork it") || (atHead && "The run is here already") || (snapshot.pruned && "Its content was pruned") }),
      action("Resume…", "r", () => openResume(model), { off: !resumable && (over ? "The run is over: fork it" : "It is being played") }),
      action(snapshot.pin !== null ? "Unpin" : "Pin", "", () => togglePin(model, snapshot.seq).then(changed, changed)),
      action("Note…", "", () => openNote(model, snapshot.seq).then(changed, changed)),
    ];
  }
}

// --- the pieces

function section(title, ...children) {
  return h("section", { class: "part" }, h("h3", {}, title), ...children);
}

function badges(snapshot) {
  const proved = snapshot.damage
    ? badge("✖", "damaged", "bad", snapshot.damage)
    : snapshot.verified
      ? badge("✓", "verified", "good", "Its digest was worked out again and is the one it is known by")
      : badge("?", "not verified", "warn", "Its bytes are not there to be proved");
  return [
    proved,
    snapshot.sealed ? badge("◼", "sealed", "dim", "The whole state is written out here") : null,
    snapshot.pruned ? badge("✂", "pruned", "warn", "Its content was removed by retention") : null,
    snapshot.pin !== null ? badge("◆", "pinned", "mark", snapshot.pin || "Kept by retention") : null,
    snapshot.marked ? badge("●", "marked", "dim", "Chosen by checkpoint.on") : null,
  ].filter(Boolean);
}

function badge(sign, word, tone, title) {
  return h("span", { class: `badge tone-${tone}`, title }, h("span", { class: "sign", aria: { hidden: "true" }, text: sign }), word);
}

function summary(snapshot) {
  const look = standing(snapshot.status);
  return h(
    "p",
    { class: "details-summary" },
    h("span", { class: `sign tone-${look.tone}`, aria: { hidden: "true" }, text: look.sign }),
    h("span", { text: [words(snapshot.status), snapshot.phase].filter(Boolean).join(" · ") }),
    h("time", { class: "dim", title: instant(snapshot.at), text: time(snapshot.at) }),
    snapshot.confidence !== null ? meter(snapshot.confidence) : null,
  );
}

function meter(value) {
  const bar = h("span", { class: "bar", aria: { hidden: "true" } }, h("span", { class: "bar-done" }));
  bar.style.setProperty("--share", String(Math.min(1, Math.max(0, value))));
  return h("span", { class: "meter", title: `confidence ${confidence(value)}` }, bar, h("span", { class: "figure", text: confidence(value) }), h("span", { class: "offscreen", text: " confidence" }));
}

function damage(snapshot) {
  if (!snapshot.damage) return null;
  return h("div", { class: "box tone-bad-box", role: "alert" }, h("strong", { text: "This snapshot is damaged." }), h("p", { text: snapshot.damage }), h("p", { class: "dim", text: "The others can still be used: step on with → or ←." }));
}

function undone(snapshot) {
  return snapshot.undone ? h("p", { class: "box tone-warn-box", text: "┊ A later rollback went back behind this snapshot: what it says was undone." }) : null;
}

function decision(each) {
  return h(
    "div",
    { class: "decision" },
    h("p", { class: "chosen" }, h("span", { class: "sign tone-accent", aria: { hidden: "true" }, text: "◆" }), h("span", { class: "offscreen", text: "Chosen: " }), each.description),
    h("p", { class: "dim decision-by" }, [each.agent, words(each.kind)].filter(Boolean).join(" · "), each.confidence !== null ? meter(each.confidence) : null),
    each.rationale ? h("p", { class: "rationale" }, h("span", { class: "label", text: "Why" }), each.rationale) : null,
    alternatives(each),
    each.details !== null && each.details !== undefined ? h("details", { class: "folded" }, h("summary", { text: "Details" }), h("pre", { class: "code", text: JSON.stringify(each.details, null, 2) })) : null,
  );
}

function alternatives(each) {
  if (!each.alternatives.length) return h("p", { class: "rationale dim" }, h("span", { class: "label", text: "Not taken" }), "no alternative was recorded");
  return h("div", { class: "rationale" }, h("span", { class: "label", text: "Not taken" }), h("ul", { class: "alternatives" }, ...each.alternatives.map((text) => h("li", { text }))));
}

function events(snapshot, model) {
  if (!snapshot.events.length) return null;
  return section("What happened", h("ul", { class: "events" }, ...snapshot.events.map((each) => event(each, model))));
}

function event(each, model) {
  const bad = each.kind === "task_failed";
  return h("li", { class: bad ? "tone-bad" : "" }, each.who ? [talkName(model, each.who, "who"), " "] : null, cut(each.sentence, 400));
}

function remarks(snapshot) {
  if (snapshot.note === null && !snapshot.pin) return null;
  return section("Remarks", snapshot.pin ? h("p", {}, "◆ ", snapshot.pin) : null, snapshot.note !== null ? h("p", { class: "note" }, "✎ ", snapshot.note) : null);
}

function figures(snapshot) {
  const total = snapshot.metrics || {};
  const added = total.added || {};
  const rows = [
    ["Tokens", added.tokens ? `+${number(added.tokens)}` : "–", compact((total.tokens_in || 0) + (total.tokens_out || 0) || total.tokens || 0)],
    ["Cost", added.cost_micros ? `+${money(added.cost_micros)}` : "–", money(total.cost_micros)],
    ["Calls", added.api_calls ? `+${number(added.api_calls)}` : "–", number(total.api_calls || 0)],
    ["Time", added.elapsed_us ? `+${duration(added.elapsed_us)}` : "–", duration(total.elapsed_us || 0)],
  ];
  const body = rows.map(([name, here, all]) => h("tr", {}, h("th", { scope: "row", text: name }), h("td", { text: here }), h("td", { text: all })));
  return section("Spent", h("table", { class: "figures" }, h("thead", {}, h("tr", {}, h("td"), h("th", { scope: "col", text: "here" }), h("th", { scope: "col", text: "so far" }))), h("tbody", {}, ...body)));
}

function triggers(snapshot) {
  if (!snapshot.triggers.length) return null;
  return section("Taken because", h("p", { class: "tags" }, ...snapshot.triggers.map((name) => h("span", { class: BAD_TRIGGERS.has(name) ? "tag tone-bad" : "tag", text: words(name) }))));
}

function identity(snapshot) {
  const rows = [
    ["Reference", copied(snapshot.reference)],
    ["Digest", copied(snapshot.digest)],
    ["UUID", copied(snapshot.uuid)],
    snapshot.builds_on && snapshot.builds_on.run !== snapshot.run ? ["Forked from", runLink(snapshot.builds_on)] : null,
    snapshot.forks?.length ? ["Forks", h("span", {}, ...snapshot.forks.map((run) => runLink({ run })))] : null,
    ["Size", `${size(snapshot.size)} added`],
    ["Generation", number(snapshot.generation)],
  ];
  const list = rows.filter((row) => row && row[1]).flatMap(([name, value]) => [h("dt", { text: name }), h("dd", {}, value)]);
  return section("Identity", h("dl", { class: "facts" }, ...list));
}

function copied(text) {
  if (!text) return null;
  return h("button", { type: "button", class: "copyable", title: `Copy ${text}`, text, on: { click: () => copy(text, "It is") } });
}

function runLink({ run, seq }) {
  const at = seq === undefined ? {} : { at: String(seq) };
  return h("a", { href: link("run", run, at), data: { route: "run" }, text: seq === undefined ? run : `${run}@${seq}` });
}

function action(label, key, press, { primary = false, off = "" } = {}) {
  return h("button", { type: "button", class: primary ? "button primary" : "button", disabled: Boolean(off), title: off || (key ? `${label} (${key})` : label), on: { click: press } }, label, key ? h("kbd", { aria: { hidden: "true" }, text: key }) : null);
}

/** The task and the error of a headline such as "analyse/security: ValueError: no". */
function taken({ kind, what }) {
  const at = what.indexOf(": ");
  if (at < 0) return { task: "", error: what };
  return { task: kind === "task_failed" ? what.slice(0, at) : "", error: what.slice(at + 2) };
}

function stackText(value, base) {
  if (value === null || typeof value !== "object") return "nothing more is known";
  const stack = value.stack?.$cut ? value.stack.$cut.text : value.stack;
  return stackLines(stack || "", base).join("\n") || "no stack was recorded";
}

customElements.define("orchestra-details", Details);
