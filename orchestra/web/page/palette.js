/** The command palette, and the help: every command with its keys, and the five questions a newcomer asks. */

import { Dialog } from "./dialog.js";
import { h, replace } from "./dom.js";
import { COMMANDS, keyLabel } from "./keys.js";

const SHOWN = 12;

/** The questions, each with the way by keys and the way by clicks; both are shorter than five. */
export const QUESTIONS = [
  {
    ask: "Why did it fail?",
    keys: ["e"],
    clicks: "Click a ✖ on the strip.",
    then: "The panel on the right says what went wrong, and where. E goes to the error before.",
  },
  {
    ask: "Who set this value?",
    keys: ["w"],
    clicks: "Click a value in the state, then Who set this?",
    then: "It names the snapshot, the time and the agent, and takes you there. [ and ] go to its other changes.",
  },
  {
    ask: "What changed between these two moments?",
    keys: ["p", "←", "d"],
    clicks: "Pin A at one snapshot, then click another.",
    then: "Pin the one, go to the other: the bar below counts what differs, and d shows it side by side.",
  },
  {
    ask: "What else was considered here?",
    keys: [],
    clicks: "Click the snapshot.",
    then: "The panel shows the decision, why it was made, how sure it was, and under Not taken what was left.",
  },
  {
    ask: "Can I try again from here with this changed?",
    keys: ["f", "Enter"],
    clicks: "Fork from here…, change the value, Fork.",
    then: "The dialog says what runs again and what is kept. The new run opens and goes while you watch; this one stays.",
  },
];

// --- palette

/**
 * Every command that can be done now, by name.
 * @param {import("./keys.js").Command[]} commands
 * @param {(command: import("./keys.js").Command) => void} [invoke]
 */
export function openPalette(commands, invoke = (command) => command.run()) {
  const palette = new Palette(commands, invoke);
  return palette.dialog.show();
}

class Palette {
  #at = 0;
  #found = [];

  constructor(commands, invoke) {
    this.commands = [...commands].sort((a, b) => place(a) - place(b));
    this.invoke = invoke;
    this.list = h("ul", { id: "palette-list", class: "palette-list", role: "listbox", aria: { label: "Commands" } });
    this.input = h("input", {
      class: "field palette-input",
      placeholder: "What do you want to do?",
      role: "combobox",
      autofocus: true,
      autocomplete: "off",
      spellcheck: "false",
      aria: { label: "Command", expanded: "true", controls: "palette-list", autocomplete: "list" },
      on: { input: () => this.#filter(), keydown: (event) => this.#key(event) },
    });
    this.dialog = new Dialog({ title: "Commands", body: [this.input, this.list], cancel: "Close" });
    this.dialog.node.classList.add("palette");
    this.#filter();
  }

  #filter() {
    this.#found = ranked(this.commands, this.input.value).slice(0, SHOWN);
    this.#at = 0;
    const rows = this.#found.map((command, at) => this.#row(command, at));
    replace(this.list, ...(rows.length ? rows : [h("li", { class: "dim palette-none", text: "No command has that name." })]));
    this.#mark();
  }

  #row(command, at) {
    return h(
      "li",
      {
        id: `palette-${at}`,
        class: "palette-row",
        role: "option",
        on: { click: () => this.#choose(at), pointermove: () => this.#move(at) },
      },
      h("span", { class: "dim palette-group", text: command.group || "" }),
      h("span", { class: "palette-title", text: command.title }),
      h("span", { class: "palette-keys" }, ...command.keys.slice(0, 1).map((key) => h("kbd", { text: keyLabel(key) }))),
    );
  }

  #key(event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const length = this.#found.length;
      if (length) {
        this.#move((this.#at + (event.key === "ArrowDown" ? 1 : length - 1)) % length);
      }
    }
    if (event.key === "Enter") {
      event.preventDefault();
      this.#choose(this.#at);
    }
  }

  #move(at) {
    this.#at = at;
    this.#mark();
  }

  #mark() {
    [...this.list.children].forEach((row, at) => row.setAttribute("aria-selected", String(at === this.#at)));
    this.input.setAttribute("aria-activedescendant", this.#found.length ? `palette-${this.#at}` : "");
    this.list.children[this.#at]?.scrollIntoView({ block: "nearest" });
  }

  async #choose(at) {
    const command = this.#found[at];
    if (!command) {
      return;
    }
    this.dialog.close(command.id);
    await this.dialog.answered;
    this.invoke(command);
  }
}

const GROUPS = ["Understand", "Find", "Act", "Page", "Move"];

/** What has the most use for somebody who does not know the keys comes first. */
function place({ group }) {
  const at = GROUPS.indexOf(group);
  return at < 0 ? GROUPS.length : at;
}

/** Commands whose title has all letters in order; those that have the words as written come first. */
function ranked(commands, text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) {
    return commands;
  }
  const scored = commands.map((command) => [score(`${command.title} ${command.group || ""}`.toLowerCase(), wanted), command]);
  return scored.filter(([points]) => points > 0).sort((a, b) => b[0] - a[0]).map(([, command]) => command);
}

function score(title, wanted) {
  if (title.startsWith(wanted)) {
    return 4;
  }
  if (title.includes(` ${wanted}`)) {
    return 3;
  }
  if (title.includes(wanted)) {
    return 2;
  }
  let at = 0;
  for (const letter of title) {
    at += letter === wanted[at] ? 1 : 0;
  }
  return at === wanted.length ? 1 : 0;
}

// --- help

/** The five questions and the table of keys. */
export function openHelp() {
  const body = [
    h("section", { class: "help-questions" }, h("h3", { text: "Five questions" }), h("ol", {}, ...QUESTIONS.map(question))),
    h("section", { class: "help-keys" }, h("h3", { text: "Keys" }), h("div", { class: "help-groups" }, ...groups())),
    h("p", { class: "dim", text: "Letters do nothing while you write in a field. Everything is also in the palette." }),
  ];
  const dialog = new Dialog({ title: "Help", wide: true, body, cancel: "Close" });
  dialog.node.classList.add("help");
  return dialog.show();
}

function question({ ask, keys, clicks, then }) {
  return h(
    "li",
    {},
    h("p", { class: "help-ask", text: ask }),
    h("div", {}, h("p", { class: "help-way" }, ...pressed(keys), h("span", { text: clicks })), h("p", { class: "dim", text: then })),
  );
}

function pressed(keys) {
  if (!keys.length) {
    return [];
  }
  return [...keys.map((key) => h("kbd", { text: key })), h("span", { class: "dim", text: " or " })];
}

function groups() {
  const names = [...new Set(COMMANDS.map((command) => command.group))];
  return names.map((name) => group(name, COMMANDS.filter((command) => command.group === name && command.keys.length)));
}

function group(name, commands) {
  const rows = commands.map((command) =>
    h("div", { class: "help-row" }, h("dt", {}, ...command.keys.slice(0, 1).map((key) => h("kbd", { text: keyLabel(key) }))), h("dd", { text: command.title })),
  );
  return h("div", { class: "help-group" }, h("h4", { text: name }), h("dl", {}, ...rows));
}
