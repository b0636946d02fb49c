/**
 * The bar at the top: which run, how it stands, its family; search and filters.
 */

import { button, h, replace, say } from "./dom.js";
import { Filters } from "./filters.js";
import { compact, count, duration, money, runParts, standing } from "./format.js";
import { icon } from "./icons.js";
import { link } from "./route.js";
import { SearchBox } from "./search.js";

export class TopBar {
  constructor(model, page) {
    this.model = model;
    this.page = page;
    this.search = new SearchBox(model);
    this.filters = new Filters(model);
    this.title = h("h1", { class: "run-title" });
    this.standing = h("span", { class: "run-standing", role: "status" });
    this.figures = h("span", { class: "run-figures dim" });
    this.family = button("Family", () => page.family(), { title: "This run and its forks" });
    this.answer = button("Answer…", () => page.answer(), { class: "primary", hidden: true });
    const home = h("a", { class: "home", href: link("runs"), data: { route: "" }, title: "All runs" }, "‹ Runs");
    const graph = h("a", { class: "button", href: link("workflow", model.run), data: { route: "" } }, "Workflow");
    const more = [
      button("All commands", () => page.palette(), { sign: icon("menu"), key: "Ctrl K", class: "quiet" }),
      button("Theme", () => page.theme(), { sign: icon("theme"), class: "quiet", title: "Light, dark, or as the system" }),
      button("Help", () => page.help(), { sign: "?", key: "?", class: "quiet" }),
    ];
    const left = h("div", { class: "top-run" }, home, this.title, this.standing, this.figures, this.answer);
    const find = h("div", { class: "top-find" }, this.search.node, this.filters.node);
    const right = h("div", { class: "top-tools" }, this.family, graph, ...more);
    this.node = h("header", { class: "top" }, left, find, right);
    model.on("run", () => this.renew());
    this.renew();
  }

  renew() {
    const { info } = this.model;
    const { name, rest } = runParts(info.run);
    if (!this.title.firstChild) {
      replace(this.title, h("span", { class: "run-name", text: name }), h("span", { class: "run-rest mono dim", text: rest }));
      this.title.title = info.run;
    }
    const { sign, tone } = standing(info.standing);
    const where = info.phase && info.standing !== "completed" ? ` in ${info.phase}` : "";
    say(this.standing, `${sign} ${info.standing}${where}${info.note ? `, ${info.note}` : ""}`);
    this.standing.className = `run-standing tone-${info.note ? "warn" : tone}`;
    this.standing.title = info.failure ? `${info.failure.error}: ${info.failure.message}` : "";
    say(this.figures, figures(info));
    const waits = (info.waits ?? []).filter((wait) => wait.status === "open");
    this.answer.hidden = !waits.length;
    say(this.answer, waits.length > 1 ? `${count(waits.length, "question")}…` : "Answer…");
    const related = (info.forks?.length ?? 0) + (info.origin ? 1 : 0);
    say(this.family, related ? `Family ▾ ${info.forks?.length ? `▲${info.forks.length}` : "fork"}` : "Family ▾");
  }
}

function figures(info) {
  const { tasks, tokens, cost_micros: cost, elapsed_us: elapsed } = info;
  return [
    tasks?.total ? `${tasks.done} of ${count(tasks.total, "task")}` : "",
    tokens ? `${compact(tokens)} tokens` : "",
    cost ? money(cost) : "",
    elapsed ? duration(elapsed) : "",
  ]
    .filter(Boolean)
    .join(" · ");
}
