/**
 * Everything that can be done, once: keys, palette and help are made from this table.
 *
 * A command's `run` gets the model of the open run and the page that shows it. `when` says whether it can be done now.
 */

/** @typedef {{id: string, keys: string[], title: string, group: string, run: Function, when?: Function}} Command */

const canAct = (model) => Boolean(model.server?.actions) && !model.source.bundle;
const hasHits = (model) => model.marks.seqs.length > 0;
const hasTalk = (model) => model.talks.speakers.length > 0;
const hasPath = (model) => model.path !== null;

function jump(model, seqs, forward, none) {
  const found = model.nextOf(seqs, forward);
  return found === null ? none : void model.select(found, { why: "jump" });
}

function forksAndJumps(model) {
  const forks = (model.info?.forks ?? []).map((fork) => fork.seq);
  return [...new Set([...forks, ...model.outline.jumps.map((each) => each.seq)])].sort((a, b) => a - b);
}

function tenth(model) {
  return Math.max(1, Math.round(model.visible.length / 10));
}

/** @type {Command[]} */
export const COMMANDS = [
  { id: "back", keys: ["ArrowLeft"], group: "Move", title: "Previous snapshot", run: (m) => m.step(-1) },
  { id: "forward", keys: ["ArrowRight"], group: "Move", title: "Next snapshot", run: (m) => m.step(1) },
  { id: "back10", keys: ["Shift+ArrowLeft"], group: "Move", title: "Ten snapshots back", run: (m) => m.step(-10) },
  { id: "forward10", keys: ["Shift+ArrowRight"], group: "Move", title: "Ten snapshots on", run: (m) => m.step(10) },
  { id: "page-back", keys: ["PageUp"], group: "Move", title: "A tenth of the run back", run: (m) => m.step(-tenth(m)) },
  { id: "page-on", keys: ["PageDown"], group: "Move", title: "A tenth of the run on", run: (m) => m.step(tenth(m)) },
  { id: "first", keys: ["Home"], group: "Move", title: "First snapshot", run: (m) => m.first() },
  { id: "last", keys: ["End"], group: "Move", title: "Last snapshot", run: (m) => m.last() },
  { id: "down", keys: ["j"], group: "Move", title: "Next row of the list", run: (m) => m.step(1, "list-key") },
  { id: "up", keys: ["k"], group: "Move", title: "Previous row of the list", run: (m) => m.step(-1, "list-key") },
  { id: "go", keys: ["g"], group: "Move", title: "Go to a snapshot by its number", run: (m, page) => page.askNumber() },
  { id: "play", keys: ["Space"], group: "Move", title: "Play, or stop playing", run: (m, page) => page.play() },
  { id: "follow", keys: ["l"], group: "Move", title: "Follow the newest snapshot, or stop", run: (m) => m.setFollow(!m.follow) },

  {
    id: "error",
    keys: ["e"],
    group: "Find",
    title: "Next error",
    run: (m) => jump(m, m.outline.errors, true, "No error after this snapshot"),
  },
  {
    id: "error-before",
    keys: ["E"],
    group: "Find",
    title: "Previous error",
    run: (m) => jump(m, m.outline.errors, false, "No error before this snapshot"),
  },
  {
    id: "branch",
    keys: ["b"],
    group: "Find",
    title: "Next fork or rollback",
    run: (m) => jump(m, forksAndJumps(m), true, "No fork or rollback after this snapshot"),
  },
  { id: "search", keys: ["/"], group: "Find", title: "Search in the states of this run", run: (m, page) => page.search() },
  {
    id: "hit",
    keys: ["n"],
    group: "Find",
    title: "Next hit",
    when: hasHits,
    run: (m) => jump(m, m.marks.seqs, true, "No hit after this snapshot"),
  },
  {
    id: "hit-before",
    keys: ["N"],
    group: "Find",
    title: "Previous hit",
    when: hasHits,
    run: (m) => jump(m, m.marks.seqs, false, "No hit before this snapshot"),
  },
  {
    id: "change-before",
    keys: ["["],
    group: "Find",
    title: "Previous change of the selected value",
    when: hasPath,
    run: (m, page) => page.valueChange(false),
  },
  {
    id: "change",
    keys: ["]"],
    group: "Find",
    title: "Next change of the selected value",
    when: hasPath,
    run: (m, page) => page.valueChange(true),
  },

  { id: "pin", keys: ["p"], group: "Understand", title: "Pin this snapshot as A, or let A go", run: (m, page) => page.pinA() },
  { id: "diff", keys: ["d"], group: "Understand", title: "Compare: changes, then side by side", run: (m, page) => page.diff() },
  {
    id: "blame",
    keys: ["w"],
    group: "Understand",
    title: "Who set the selected value?",
    when: hasPath,
    run: (m, page) => page.blame(),
  },
  { id: "tab-changes", keys: ["1"], group: "Understand", title: "Show the changes", run: (m) => m.setTab("changes") },
  { id: "tab-before", keys: ["2"], group: "Understand", title: "Show the state before", run: (m) => m.setTab("before") },
  { id: "tab-after", keys: ["3"], group: "Understand", title: "Show the state after", run: (m) => m.setTab("after") },
  { id: "tab-sides", keys: ["4"], group: "Understand", title: "Show both side by side", run: (m) => m.setTab("sides") },
  { id: "talk", keys: ["c", "5"], group: "Understand", title: "Show the conversation", when: hasTalk, run: (m, page) => page.talk() },

  { id: "fork", keys: ["f"], group: "Act", title: "Fork from here…", when: canAct, run: (m, page) => page.dialog("fork") },
  { id: "resume", keys: ["r"], group: "Act", title: "Resume the run…", when: canAct, run: (m, page) => page.dialog("resume") },
  { id: "rollback", keys: [], group: "Act", title: "Roll back to here…", when: canAct, run: (m, page) => page.dialog("rollback") },
  { id: "keep", keys: [], group: "Act", title: "Keep this snapshot, or let it go", when: canAct, run: (m, page) => page.dialog("keep") },
  { id: "note", keys: [], group: "Act", title: "Write a note on this snapshot…", when: canAct, run: (m, page) => page.dialog("note") },
  { id: "link", keys: ["y"], group: "Page", title: "Copy a link to this view", run: (m, page) => page.copyLink() },
  { id: "steps", keys: [], group: "Page", title: "Strip by time or by steps", run: (m, page) => page.strip.toggleScale() },
  { id: "theme", keys: [], group: "Page", title: "Light, dark, or as the system", run: (m, page) => page.theme() },
  { id: "palette", keys: ["Control+k", "Meta+k"], group: "Page", title: "All commands", run: (m, page) => page.palette() },
  { id: "help", keys: ["?"], group: "Page", title: "Help", run: (m, page) => page.help() },
  { id: "escape", keys: ["Escape"], group: "Page", title: "Back: close, unselect, let go", run: (m, page) => page.escape() },
];

const NAMES = {
  ArrowLeft: "←",
  ArrowRight: "→",
  ArrowUp: "↑",
  ArrowDown: "↓",
  Escape: "Esc",
  Control: "Ctrl",
  Meta: "⌘",
  PageUp: "PgUp",
  PageDown: "PgDn",
};

/** A key as it is written on keyboards. */
export function keyLabel(key) {
  return key
    .split("+")
    .map((part) => NAMES[part] ?? part)
    .join(" ");
}

/** The key of an event, as the table writes it. */
export function keyOf(event) {
  const name = event.key === " " ? "Space" : event.key;
  const shifted = event.shiftKey && name.length > 1 ? "Shift+" : "";
  const control = event.ctrlKey ? "Control+" : "";
  const meta = event.metaKey ? "Meta+" : "";
  return control + meta + (event.altKey ? "Alt+" : "") + shifted + name;
}

const TYPED = "input:not([type=checkbox]):not([type=radio]):not([type=range]):not([type=button]), textarea, select";

/** Whether somebody is writing there. */
export function isTyping(target) {
  return target instanceof Element && (target.matches(TYPED) || target.isContentEditable);
}

/** What a key press asks for, or null: never a single letter inside a field, nothing behind an open dialog. */
export function commandFor(event) {
  if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) {
    return null;
  }
  const key = keyOf(event);
  const held = event.ctrlKey || event.metaKey;
  if (isTyping(event.target) && !held) {
    return null;
  }
  if (key === "Space" && event.target instanceof Element && event.target.closest("button, a, summary, [role=tab]")) {
    return null;
  }
  return COMMANDS.find((command) => command.keys.includes(key)) ?? null;
}
