/**
 * The row below the strip: step, play, follow, and what the selected snapshot is in one line.
 */

import { FLAG } from "./columns.js";
import { button, h, replace, say } from "./dom.js";
import { clock, confidence, count, number, words } from "./format.js";
import { icon } from "./icons.js";
import { signOf } from "./signs.js";

const SPEEDS = [
  { name: "1×", step: 300 },
  { name: "2×", step: 150 },
  { name: "real time", step: null },
];
const LONGEST_MS = 2500;
const SHORTEST_MS = 16;

export class Transport {
  constructor(model) {
    this.model = model;
    this.speed = 0;
    this.timer = 0;
    const go = (label, name, run, key) => button(label, run, { sign: icon(name), key, class: "quiet" });
    this.playing = go("Play", "play", () => this.play(), "Space");
    this.pace = button("Speed", () => this.faster(), { sign: SPEEDS[0].name, class: "quiet pace" });
    this.followed = button("Follow", () => model.setFollow(!model.follow), { key: "l", aria: { pressed: "false" }, class: "follow" });
    this.pill = button("New snapshots", () => model.setFollow(true), { class: "pill", hidden: true });
    this.link = h("span", { class: "connection tone-warn", role: "status" });
    this.scale = button("Scale", () => this.onScale?.(), { sign: "by time", class: "quiet", title: "Strip by time, or by steps" });
    this.readout = h("div", { class: "readout" });
    this.parts = ["seq", "when", "sign", "who", "why", "sure"].map((name) => h("span", { class: `read-${name}` }));
    this.readout.append(...this.parts);
    this.node = h(
      "div",
      { class: "transport", role: "toolbar", aria: { label: "Move through time" } },
      go("First snapshot", "first", () => model.first(), "Home"),
      go("Previous snapshot", "back", () => model.step(-1), "←"),
      this.playing,
      go("Next snapshot", "next", () => model.step(1), "→"),
      go("Last snapshot", "last", () => model.last(), "End"),
      this.pace,
      this.scale,
      this.followed,
      this.pill,
      this.link,
      this.readout,
    );
    model
      .on("select", ({ why }) => {
        if (why !== "play") this.stop();
        this.read();
      })
      .on("headlines", () => this.read())
      .on("columns", () => this.read())
      .on("live", () => this.fresh())
      .on("follow", () => this.fresh())
      .on("run", () => this.fresh())
      .on("scale", ({ mode }) => say(this.scale, mode === "time" ? "by time" : "by steps"))
      .on("link", ({ lost }) => say(this.link, lost ? "connection lost, trying again…" : ""));
    this.fresh();
    this.read();
  }

  // --- playing

  play() {
    if (this.timer) {
      this.stop();
      return;
    }
    if (this.model.selected === this.model.newest) this.model.first("play");
    this.playing.setAttribute("aria-label", "Stop");
    replace(this.playing, icon("pause"));
    this.timer = setTimeout(() => this.next(), this.wait());
  }

  stop() {
    if (!this.timer) return;
    clearTimeout(this.timer);
    this.timer = 0;
    this.playing.setAttribute("aria-label", "Play");
    replace(this.playing, icon("play"));
  }

  next() {
    const { model } = this;
    const before = model.selected;
    model.step(1, "play");
    if (model.selected === before) this.stop();
    else this.timer = setTimeout(() => this.next(), this.wait());
  }

  /** How long the selected snapshot is shown: a beat, or as long as it lasted, idle time cut short. */
  wait() {
    const { step } = SPEEDS[this.speed];
    if (step !== null) return step;
    const { columns, visible } = this.model;
    const place = this.model.visiblePlace();
    const [now, then] = [visible[place], visible[place + 1]];
    if (then === undefined || now === undefined) return SHORTEST_MS;
    return Math.min(LONGEST_MS, Math.max(SHORTEST_MS, (columns.atOf(then) - columns.atOf(now)) / 1000));
  }

  faster() {
    this.speed = (this.speed + 1) % SPEEDS.length;
    say(this.pace, SPEEDS[this.speed].name);
  }

  // --- what is said

  fresh() {
    const { model } = this;
    const live = model.info?.standing === "running" || model.fresh > 0;
    this.followed.hidden = !live && !model.follow;
    this.followed.setAttribute("aria-pressed", String(model.follow));
    say(this.followed, model.follow ? "● Following" : "○ Follow");
    this.pill.hidden = model.follow || model.fresh === 0;
    say(this.pill, `${number(model.fresh)} new`);
    this.pill.setAttribute("aria-label", `${count(model.fresh, "new snapshot")}: follow`);
    this.read();
  }

  read() {
    const { columns, headlines, index, selected, newest } = this.model;
    if (index < 0) return;
    const headline = headlines.get(selected);
    const { sign, word, tone } = signOf(columns.flags[index], columns.triggersOf(index));
    const [seq, when, mark, who, why, sure] = this.parts;
    say(seq, `#${number(selected)} of ${number(newest)}`);
    say(when, clock(columns.atOf(index)));
    say(mark, columns.flags[index] & (FLAG.error | FLAG.rolledBack | FLAG.pruned | FLAG.pinned | FLAG.note) ? `${sign} ${word}` : "");
    mark.className = `read-sign tone-${tone}`;
    const agents = columns.agentsOf(index);
    say(who, agents.length > 2 ? count(agents.length, "agent") : agents.join(", "));
    who.title = agents.join(", ");
    say(why, columns.triggersOf(index).map(words).join(", "));
    why.title = why.textContent;
    say(sure, headline && headline.confidence !== null && headline.confidence !== undefined ? confidence(headline.confidence) : "");
    sure.title = "Confidence";
  }
}
