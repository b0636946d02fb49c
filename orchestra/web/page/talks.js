/** Who of a run has talked to a language model, whose conversation is shown, and what was said at a snapshot. */

import { h } from "./dom.js";
import { Answers } from "./lru.js";

const KEPT = 40;

export class Talks {
  kept = new Answers(KEPT);
  who = null;

  constructor(model) {
    this.model = model;
  }

  /** The agents that have talked to a language model, as of the newest snapshot. */
  get speakers() {
    return (this.model.info?.agents ?? []).filter((each) => each.messages).map((each) => each.agent);
  }

  /** Whose conversation is shown: who was chosen, or asks something, or was the first to talk. */
  get speaker() {
    const { speakers } = this;
    const asks = (this.model.info?.waits ?? []).find((wait) => wait.status === "open" && speakers.includes(wait.agent));
    return this.who ?? asks?.agent ?? speakers[0] ?? null;
  }

  /** Show the conversation of an agent. */
  open(who = this.who) {
    const { model } = this;
    const same = model.tab === "talk" && this.who === who;
    this.who = who;
    model.tab = "talk";
    if (!same) model.tell("tab");
  }

  /** Messages of somebody's conversation: the newest, or those from `first` on. */
  at(seq, who, first, limit) {
    const { source, run } = this.model;
    const from = first === null ? {} : { first, limit };
    return this.kept.get(JSON.stringify([seq, who, first]), () => source.conversation(run, seq, who, from));
  }
}

/** The name of an agent; where it has talked to a language model, it opens what was said. */
export function talkName(model, agent, look) {
  if (!model.talks.speakers.includes(agent)) return h("span", { class: look, text: agent });
  return h("button", { type: "button", class: `link ${look}`, title: `Show the conversation of ${agent}`, text: agent, on: { click: () => model.talks.open(agent) } });
}
