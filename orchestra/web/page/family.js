/**
 * A family: a run with all its forks, as lanes. The first run has lane 0; every fork has a lane of its own that leaves the
 * lane of the run it began in at the snapshot it began at.
 */

import { Dialog } from "./dialog.js";
import { h, replace, svg } from "./dom.js";
import { count, number, runParts, standing, words } from "./format.js";
import { go, link } from "./route.js";

const LANE = 14;
const ROW = 34;
const EDGE = 10;

/**
 * The runs of a family in the order they are drawn, each fork below the run it came from.
 * @param {{run: string, origin: null|{run: string, seq: number}, created_at: number}[]} runs
 */
export function lanes(runs) {
  const known = new Map(runs.map((run) => [run.run, run]));
  const below = new Map();
  for (const run of [...runs].sort((a, b) => a.created_at - b.created_at)) {
    const from = run.origin && known.has(run.origin.run) ? run.origin.run : "";
    below.set(from, [...(below.get(from) || []), run]);
  }
  const rows = [];
  const add = (from, parent, depth) => {
    for (const run of below.get(from) || []) {
      rows.push({ ...run, lane: depth, parent, seq: run.origin ? run.origin.seq : null });
      add(run.run, rows.length - 1, depth + 1);
    }
  };
  add("", -1, 0);
  return rows;
}

/** The family of the open run, as a dialog: choose another run of it. */
export async function openFamily(model) {
  const body = h("div", { class: "family", aria: { busy: "true" } }, h("p", { class: "dim", text: "Reading…" }));
  const dialog = new Dialog({ title: "Family", wide: true, body: [body], cancel: "Close" });
  const shown = dialog.show();
  try {
    const { runs } = await model.source.family(model.info?.family ?? model.run);
    const rows = lanes(runs);
    replace(body, h("p", { class: "dim", text: summary(rows) }), drawn(rows, model, dialog));
  } catch (failure) {
    replace(body, h("p", { class: "tone-bad", role: "alert", text: failure.message }));
  }
  body.removeAttribute("aria-busy");
  return shown;
}

function summary(rows) {
  return rows.length === 1 ? "This run was not forked." : `${count(rows.length, "run")}: one and ${count(rows.length - 1, "fork")}. Each fork leaves its run where it began.`;
}

function drawn(rows, model, dialog) {
  const width = EDGE * 2 + LANE * Math.max(...rows.map((row) => row.lane));
  const picture = svg("svg", { class: "family-lanes", width, height: rows.length * ROW, "aria-hidden": "true" }, ...rows.flatMap((row, at) => strokes(rows, row, at)));
  const list = h("ol", { class: "family-list" }, ...rows.map((row) => entry(row, model, dialog)));
  return h("div", { class: "family-graph" }, picture, list);
}

function strokes(rows, row, at) {
  const x = EDGE + LANE * row.lane;
  const y = ROW * at + ROW / 2;
  const marks = [svg("circle", { class: `family-dot tone-${standing(row.standing).tone}`, cx: x, cy: y, r: 4.5 })];
  if (row.parent >= 0) {
    const fromX = EDGE + LANE * rows[row.parent].lane;
    const fromY = ROW * row.parent + ROW / 2 + 5;
    marks.unshift(svg("path", { class: "family-line", d: `M${fromX} ${fromY}V${y - 8}Q${fromX} ${y} ${fromX + 8} ${y}H${x - 5}` }));
  }
  return marks;
}

function entry(row, model, dialog) {
  const look = standing(row.standing);
  const { name, rest } = runParts(row.run);
  const here = row.run === model.run;
  const press = (event) => {
    event.preventDefault();
    dialog.close();
    go("run", row.run);
  };
  const origin = row.origin ? `from snapshot ${number(row.origin.seq)}` : "the first";
  return h(
    "li",
    { class: here ? "here" : "" },
    h(
      "a",
      { href: link("run", row.run), "aria-current": here ? "page" : null, on: { click: press } },
      h("span", { class: "run-name" }, h("b", { text: name }), " ", h("span", { class: "dim", text: rest })),
      h("span", { class: "dim", text: origin }),
      h("span", { class: "dim", text: count(row.head + 1, "snapshot") }),
      h("span", {}, h("span", { class: `sign tone-${look.tone}`, aria: { hidden: "true" }, text: look.sign }), words(row.standing)),
    ),
  );
}
