/**
 * The definition a run is played from, drawn as a graph: phases with their specialists, the ways between them, and the way
 * this run took on it. A phase leads to the snapshot at which the run was in it.
 */

import { h, replace, svg, trouble } from "./dom.js";
import { clock, confidence, count, duration, number } from "./format.js";
import { curve, layout } from "./graph.js";
import { link } from "./route.js";

const WIDTH = 226;
const HEAD = 34;
const LINE = 24;
const FOOT = 8;
const END = "\u0000end";
const EDGE = 16;
const BELOW = 11;
const NARROW = 720;
const SIGNS = { done: ["✔", "good"], current: ["●", "accent"], "not reached": ["○", "dim"] };

class WorkflowPage extends HTMLElement {
  #narrow = null;
  #stop = null;
  #timer = 0;

  source = null;
  run = "";

  connectedCallback() {
    this.classList.add("workflow");
    replace(this, h("p", { class: "loading", role: "status", text: "Opening…" }));
    this.resized = () => this.#fit();
    addEventListener("resize", this.resized);
    this.#load();
    this.#stop = this.source.events({ run: this.run }, (event) => event.type === "snapshot" && this.#soon());
  }

  disconnectedCallback() {
    removeEventListener("resize", this.resized);
    this.#stop?.();
    clearTimeout(this.#timer);
  }

  #soon() {
    this.#timer ||= setTimeout(() => {
      this.#timer = 0;
      this.#load();
    }, 700);
  }

  async #load() {
    try {
      const found = await this.source.workflow(this.run);
      if (this.isConnected) {
        this.#show(found);
      }
    } catch (failure) {
      if (this.isConnected) {
        replace(this, trouble(failure, () => this.#load()), back(this.run));
      }
    }
  }

  #show(found) {
    this.found = found;
    document.title = `${found.name} · orchestra`;
    this.#narrow = this.clientWidth < NARROW;
    const left = this.querySelector(".graph-box")?.scrollLeft ?? 0;
    const box = h("div", { class: "graph-box", tabindex: "0", role: "group", aria: { label: `The workflow ${found.name} as a graph` } }, graph(found, this.run, this.#narrow));
    replace(this, head(found, this.run), box, journey(found, this.run));
    box.scrollLeft = left;
  }

  /** Turns the graph when the page becomes narrow or wide. */
  #fit() {
    if (this.found && this.clientWidth < NARROW !== this.#narrow) {
      this.#show(this.found);
    }
  }
}

function back(run) {
  return h("p", { class: "workflow-back" }, h("a", { href: link("run", run), data: { route: "run" }, text: "← Back to the run" }));
}

function head(found, run) {
  const taken = found.path.length;
  return h(
    "header",
    { class: "workflow-head" },
    h("a", { class: "crumb", href: link("runs"), data: { route: "runs" }, text: "Runs" }),
    h("span", { class: "dim", aria: { hidden: "true" }, text: "/" }),
    h("a", { class: "crumb cutoff", href: link("run", run), data: { route: "run" }, text: run }),
    h("span", { class: "dim", aria: { hidden: "true" }, text: "/" }),
    h("h1", { text: found.name }),
    h("p", { class: "dim workflow-facts", text: [count(found.phases.length, "phase"), `${count(taken, "visit")} so far`, found.file].filter(Boolean).join(" · ") }),
    h(
      "p",
      { class: "legend" },
      ...Object.entries(SIGNS).map(([name, [sign, tone]]) => h("span", {}, h("span", { class: `sign tone-${tone}`, aria: { hidden: "true" }, text: sign }), name)),
      h("span", {}, legendLine("edge taken"), "taken"),
      h("span", {}, legendLine("edge"), "not taken"),
    ),
  );
}

function legendLine(kind) {
  return svg("svg", { width: 26, height: 10, "aria-hidden": "true" }, svg("path", { class: kind, d: "M0 5H26" }));
}

// --- the graph

function graph(found, run, down) {
  const phases = new Map(found.phases.map((phase) => [phase.id, phase]));
  const lines = found.edges.map((edge) => ({ ...edge, to: phases.has(edge.to) ? edge.to : END }));
  const ends = lines.some((line) => line.to === END);
  const boxes = found.phases.map((phase) => ({ id: phase.id, width: WIDTH, height: heightOf(phase) }));
  if (ends) {
    boxes.push({ id: END, width: down ? WIDTH : 74, height: HEAD });
  }
  const ways = merged(lines);
  const drawn = layout(boxes, ways, found.entry, { down, layerGap: down ? 56 : 76, wideGap: down ? 56 : 158, boxGap: 30, laneGap: 26 });
  const width = drawn.width + EDGE * 2;
  const height = drawn.height + EDGE * 2 + BELOW;
  const stage = h("div", { class: "graph" });
  stage.style.width = `${width}px`;
  stage.style.height = `${height}px`;
  stage.append(picture(drawn, width, height), ...labels(drawn));
  for (const box of drawn.boxes) {
    stage.append(placed(box.id === END ? ending(found) : phaseBox(phases.get(box.id), found, run), box));
  }
  return stage;
}

/** One line for all the ways between two phases; each keeps its condition. */
function merged(edges) {
  const found = new Map();
  for (const edge of edges) {
    const key = `${edge.from}\u0000${edge.to}`;
    const line = found.get(key) ?? { from: edge.from, to: edge.to, taken: 0, when: [], said: false };
    line.taken = Math.max(line.taken, edge.taken);
    if (edge.when) {
      line.when.push(edge.when);
      line.said = true;
    }
    found.set(key, line);
  }
  return [...found.values()];
}

function heightOf(phase) {
  return HEAD + LINE * (phase.specialists.length + (phase.evaluate ? 1 : 0)) + FOOT;
}

function placed(node, { x, y, width, height }) {
  node.style.left = `${x + EDGE}px`;
  node.style.top = `${y + EDGE}px`;
  node.style.width = `${width}px`;
  node.style.height = `${height}px`;
  return node;
}

function picture(drawn, width, height) {
  const arrow = (id, kind) => svg("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto-start-reverse" }, svg("path", { class: kind, d: "M0 0.5L7.5 4L0 7.5z" }));
  return svg(
    "svg",
    { class: "graph-lines", width, height, "aria-hidden": "true" },
    svg("defs", {}, arrow("arrow", "arrow"), arrow("arrow-taken", "arrow taken")),
    svg("g", { transform: `translate(${EDGE} ${EDGE})` }, ...drawn.lines.map((line) => svg("path", { class: line.taken ? "edge taken" : "edge", d: curve(line, drawn.down), "marker-end": line.taken ? "url(#arrow-taken)" : "url(#arrow)" }))),
  );
}

/** What is said on a line: its condition, and how often it was taken when that was more than once. */
function labels(drawn) {
  return drawn.lines.filter((line) => line.when.length || line.taken > 1).map((line) => {
    const text = [line.when.join(" or "), line.taken > 1 || (line.back && line.taken) ? `×${number(line.taken)}` : ""].filter(Boolean);
    const [x, y] = middle(line);
    const node = h("span", { class: line.taken ? "edge-label taken" : "edge-label", title: `${line.from} → ${line.to === END ? "end" : line.to}: ${text.join(" ")}` }, ...text.map((each, at) => h("span", { class: at || text.length === 1 && each[0] === "×" ? "edge-count" : "edge-when", text: each })));
    node.style.left = `${x + EDGE}px`;
    node.style.top = `${y + EDGE}px`;
    return node;
  });
}

function middle({ points, back }) {
  if (back) {
    return [(points[1][0] + points[2][0]) / 2, points[1][1] + BELOW];
  }
  const at = Math.floor((points.length - 1) / 2);
  const [first, second] = [points[at], points[at + 1]];
  return [(first[0] + second[0]) / 2, (first[1] + second[1]) / 2];
}

function phaseBox(phase, found, run) {
  const [sign, tone] = SIGNS[phase.status] ?? SIGNS["not reached"];
  const visits = found.path.filter((visit) => visit.phase === phase.id);
  const newest = visits.findLast((visit) => visit.seq !== null);
  const title = [
    h("span", { class: `sign tone-${tone}`, aria: { hidden: "true" }, text: sign }),
    h("span", { class: "phase-name cutoff", text: phase.id }),
    phase.visits > 1 ? h("span", { class: "phase-visits", title: count(phase.visits, "visit"), text: `×${number(phase.visits)}` }) : null,
    h("span", { class: "offscreen", text: `, ${phase.status}` }),
  ];
  const name = newest
    ? h("a", { class: "phase-head", href: link("run", run, { at: String(newest.seq) }), data: { route: "run" }, title: `Go to snapshot ${newest.seq}, where ${phase.id} began` }, ...title)
    : h("div", { class: "phase-head" }, ...title);
  const evaluate = phase.evaluate ? h("li", { class: "phase-judge", title: judged(phase.evaluate) }, h("span", { class: "sign", aria: { hidden: "true" }, text: "⚖" }), h("span", { class: "cutoff", text: phase.evaluate.agent }), h("span", { class: "dim", text: `≥ ${confidence(phase.evaluate.threshold ?? null)}` })) : null;
  return h("section", { class: "phase-box", data: { status: phase.status, phase: phase.id } }, name, h("ul", { class: "phase-list" }, ...phase.specialists.map(specialist), evaluate));
}

function specialist(each) {
  const extra = [each.foreach ? "each" : "", each.needs?.length ? `after ${each.needs.join(", ")}` : ""].filter(Boolean).join(" · ");
  const hint = [each.task, each.foreach && `one task for each of ${each.foreach}`, each.needs?.length && `needs ${each.needs.join(", ")}`, each.into && `into ${each.into}`].filter(Boolean).join("\n");
  return h("li", { title: hint }, h("span", { class: "cutoff", text: each.id }), h("span", { class: "dim cutoff specialist-extra", text: extra || (each.agent !== each.id ? each.agent : "") }));
}

function judged({ agent, threshold, rubric }) {
  const parts = (rubric ?? []).map(({ name, weight }) => `${name} ${weight}`);
  return `${agent} judges${threshold === null || threshold === undefined ? "" : `, threshold ${threshold}`}${parts.length ? `: ${parts.join(", ")}` : ""}`;
}

function ending(found) {
  const reached = found.phases.every((phase) => phase.status !== "current") && found.path.length > 0;
  return h("div", { class: "phase-end", data: { reached: String(reached) } }, h("span", { class: "sign", aria: { hidden: "true" }, text: "◎" }), "end");
}

// --- the way it took

function journey(found, run) {
  if (!found.path.length) {
    return h("p", { class: "dim journey-none", text: "The run has not entered a phase yet." });
  }
  const rows = found.path.map((visit, at) => {
    const took = visit.completed_at ? duration(visit.completed_at - visit.started_at) : "open";
    const known = visit.seq !== null;
    return h(
      "li",
      {},
      h(
        known ? "a" : "div",
        known ? { class: "journey-row", href: link("run", run, { at: String(visit.seq) }), data: { route: "run" } } : { class: "journey-row" },
        h("span", { class: "dim", text: String(at + 1) }),
        h("b", { class: "cutoff", text: visit.phase }),
        h("span", { class: "dim", text: visit.visit > 1 ? `visit ${visit.visit}` : "" }),
        h("span", { class: "dim", text: visit.started_at ? clock(visit.started_at).slice(0, 8) : "" }),
        h("span", { text: took }),
        h("span", { class: "dim", text: known ? `#${number(visit.seq)}` : "" }),
      ),
    );
  });
  return h("section", { class: "journey" }, h("h2", { text: "The way it took" }), h("ol", {}, ...rows));
}

customElements.define("orchestra-workflow", WorkflowPage);
