/**
 * Filters as chips: what is chosen stands in the bar and in the address, the rest behind one button.
 */

import { button, h, replace } from "./dom.js";
import { isEmpty, noFilter } from "./filter.js";
import { words } from "./format.js";

const GROUPS = { agents: "Agent", triggers: "Trigger", phases: "Phase", status: "Status" };
const COLUMNS = { agents: "agents", triggers: "triggers", phases: "phase", status: "status" };

export class Filters {
  constructor(model) {
    this.model = model;
    this.chips = h("div", { class: "chips", role: "group", aria: { label: "Filters" } });
    this.panel = h("div", { id: "filter-panel", class: "popover", popover: "auto" });
    this.panel.addEventListener("toggle", (event) => event.newState === "open" && this.fill());
    this.open = h("button", { type: "button", popovertarget: "filter-panel", title: "Filter the snapshots" }, "Filter");
    this.errors = button("✖ Errors", () => this.set({ errors: !model.filter.errors }), { title: "Only errors" });
    this.node = h("div", { class: "filters" }, this.open, this.errors, this.chips, this.panel);
    model.on("filter", () => this.renew());
    this.renew();
  }

  set(part) {
    this.model.setFilter({ ...this.model.filter, ...part });
  }

  toggle(group, word) {
    const chosen = this.model.filter[group];
    this.set({ [group]: chosen.includes(word) ? chosen.filter((each) => each !== word) : [...chosen, word] });
  }

  renew() {
    const { filter } = this.model;
    this.errors.setAttribute("aria-pressed", String(filter.errors));
    const chips = [];
    for (const [group, title] of Object.entries(GROUPS)) {
      for (const word of filter[group]) chips.push(chip(`${title.toLowerCase()}: ${words(word)}`, () => this.toggle(group, word)));
    }
    if (filter.marked) chips.push(chip("marked", () => this.set({ marked: false })));
    if (filter.text) chips.push(chip(`named “${filter.text}”`, () => this.set({ text: "" })));
    if (!isEmpty(filter) && chips.length > 1) chips.push(button("Clear", () => this.model.setFilter(noFilter()), { class: "quiet" }));
    replace(this.chips, ...chips);
    if (this.panel.matches(":popover-open")) this.fill();
  }

  fill() {
    const { filter } = this.model;
    const focused = document.activeElement?.dataset?.word;
    const groups = Object.entries(GROUPS).map(([group, title]) => this.group(group, title));
    const marked = this.box("Marked only", filter.marked, () => this.set({ marked: !filter.marked }), "marked");
    replace(this.panel, ...groups, h("fieldset", {}, h("legend", { text: "Kind" }), marked));
    if (focused) this.panel.querySelector(`[data-word="${CSS.escape(focused)}"]`)?.focus();
    const box = this.open.getBoundingClientRect();
    this.panel.style.left = `${Math.max(8, Math.min(box.left, innerWidth - this.panel.offsetWidth - 8))}px`;
    this.panel.style.top = `${box.bottom + 4}px`;
  }

  group(group, title) {
    const found = new Set(this.model.columns.words[COLUMNS[group]].list.flat());
    for (const word of this.model.filter[group]) found.add(word);
    const boxes = [...found].sort().map((word) => this.box(words(word), this.model.filter[group].includes(word), () => this.toggle(group, word), `${group} ${word}`));
    return boxes.length ? h("fieldset", {}, h("legend", { text: title }), ...boxes) : null;
  }

  box(text, on, run, word) {
    const input = h("input", { type: "checkbox", checked: on, data: { word }, on: { change: run } });
    return h("label", { class: "check" }, input, h("span", { text }));
  }
}

function chip(text, remove) {
  return h("span", { class: "chip" }, h("span", { text }), button(`Remove the filter ${text}`, remove, { sign: "×", class: "quiet" }));
}
