/**
 * What agents say while they say it: the newest text of each, as it comes.
 */

import { button, h, say } from "./dom.js";
import { talkName } from "./talks.js";

const KEPT = 4000;
const QUIET_MS = 20_000;

export class Speech {
  constructor(model) {
    this.model = model;
    this.voices = new Map();
    this.list = h("div", { class: "speech-list" });
    this.node = h(
      "section",
      { class: "speech", hidden: true, aria: { label: "What agents are saying" } },
      button("Hide what agents say", () => this.hide(), { sign: "×", class: "quiet speech-close" }),
      this.list,
    );
    model.on("text", ({ text }) => this.heard(text)).on("tab", () => model.tab === "talk" && this.hide());
  }

  heard(pieces) {
    if (!this.model.follow || this.model.tab === "talk") return;
    for (const { agent: speaker, message, append } of pieces) {
      const agent = speaker ?? talker(message);
      const voice = this.voice(agent);
      voice.text = (voice.text + append).slice(-KEPT);
      say(voice.words, voice.text);
      voice.words.scrollTop = voice.words.scrollHeight;
      clearTimeout(voice.timer);
      voice.timer = setTimeout(() => this.quiet(agent), QUIET_MS);
    }
    this.node.hidden = false;
  }

  voice(agent) {
    let voice = this.voices.get(agent);
    if (!voice) {
      const words = h("p", { class: "speech-words", tabindex: "0" });
      const node = h("div", { class: "speech-voice" }, h("span", { class: "speech-who" }, talkName(this.model, agent || "somebody", "")), words);
      voice = { text: "", words, node, timer: 0 };
      this.voices.set(agent, voice);
      this.list.append(node);
    }
    return voice;
  }

  quiet(agent) {
    this.voices.get(agent)?.node.remove();
    this.voices.delete(agent);
    if (!this.voices.size) this.node.hidden = true;
  }

  hide() {
    for (const [agent, voice] of [...this.voices]) {
      clearTimeout(voice.timer);
      this.quiet(agent);
    }
  }
}

/** The agent of a message, whose name begins with its assignment: work/clerk#3, work.2/clerk~2#0. */
function talker(message) {
  return /([^/#~[]+)[^/#]*#\d+$/.exec(message ?? "")?.[1] ?? "";
}
