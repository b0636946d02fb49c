/**
 * The graph beside the list: the run's own lane, the way back of every rollback, forks that left, and where the run
 * itself came from. Each row draws its own piece; the pieces meet at the edges.
 */

import { h, svg } from "./dom.js";

const WIDTH = 38;
const HEIGHT = 26;
const MIDDLE = HEIGHT / 2;
const MAIN = 9;
const STEP = 7;
const MOST = 3;

/** Which lines pass through which row. */
export class Lanes {
  constructor() {
    this.set([], [], null);
  }

  set(jumps, forks, origin) {
    this.jumps = placed(jumps);
    this.forks = new Set(forks.map((fork) => fork.seq));
    this.origin = origin;
    const deep = Math.max(-1, ...this.jumps.map((jump) => jump.lane));
    this.width = forks.length || origin ? WIDTH : deep < 0 ? MAIN * 2 + 2 : MAIN + 8 + deep * STEP + 8;
  }

  /** What a row shows. */
  at(seq) {
    const through = [];
    let starts = null;
    const ends = [];
    let undone = false;
    for (const jump of this.jumps) {
      if (seq > jump.to && seq < jump.seq) {
        through.push(jump.lane);
        undone = true;
      } else if (seq === jump.seq) {
        starts = jump.lane;
      } else if (seq === jump.to) {
        ends.push(jump.lane);
      }
    }
    return { through, starts, ends, undone, fork: this.forks.has(seq), begins: seq === 0 && this.origin !== null };
  }
}

/** Jumps that overlap stand side by side, the shortest nearest to the run's lane. */
function placed(jumps) {
  const sorted = [...jumps].sort((a, b) => a.seq - a.to - (b.seq - b.to));
  const taken = [];
  for (const jump of sorted) {
    let lane = 0;
    while (lane < MOST - 1 && taken.some((other) => other.lane === lane && other.to <= jump.seq && jump.to <= other.seq)) {
      lane += 1;
    }
    taken.push({ ...jump, lane });
  }
  return taken;
}

/** The drawing of one row, to be filled again and again. */
export function laneCell() {
  const cell = {
    main: svg("path", { class: "lane-main" }),
    jump: svg("path", { class: "lane-jump" }),
    head: svg("path", { class: "lane-head" }),
    fork: svg("path", { class: "lane-fork" }),
    dot: svg("circle", { class: "lane-dot", cx: MAIN, cy: MIDDLE, r: 3 }),
    key: "",
  };
  const drawing = svg(
    "svg",
    { width: WIDTH, height: HEIGHT, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, focusable: "false" },
    cell.main,
    cell.jump,
    cell.fork,
    cell.head,
    cell.dot,
  );
  cell.node = h("span", { class: "lane", aria: { hidden: "true" } }, drawing);
  return cell;
}

/** Draw a row's piece; says whether a later rollback went behind it. */
export function drawLane(cell, lanes, seq, flags) {
  const row = lanes.at(seq);
  const key = `${row.through} ${row.starts} ${row.ends} ${row.fork} ${row.begins} ${seq === 0} ${flags & 9}`;
  if (cell.key !== key) {
    cell.key = key;
    cell.main.setAttribute("d", `M${MAIN} ${seq === 0 ? MIDDLE : 0}V${HEIGHT}`);
    cell.jump.setAttribute("d", jumpPath(row));
    cell.head.setAttribute("d", row.ends.length ? `M${MAIN + 9} ${MIDDLE - 3.5}L${MAIN + 4} ${MIDDLE}L${MAIN + 9} ${MIDDLE + 3.5}` : "");
    cell.fork.setAttribute("d", forkPath(row));
    cell.dot.setAttribute("r", flags & 9 ? "3.6" : "2.4");
    cell.node.setAttribute("class", `lane${row.undone ? " undone" : ""}${flags & 8 ? " bad" : ""}`);
  }
  return row.undone;
}

function x(lane) {
  return MAIN + 8 + lane * STEP;
}

function jumpPath({ through, starts, ends }) {
  const parts = through.map((lane) => `M${x(lane)} 0V${HEIGHT}`);
  if (starts !== null) {
    parts.push(`M${MAIN} ${MIDDLE}C${x(starts)} ${MIDDLE} ${x(starts)} ${MIDDLE - 4} ${x(starts)} 0`);
  }
  for (const lane of ends) {
    parts.push(`M${x(lane)} ${HEIGHT}C${x(lane)} ${MIDDLE + 4} ${x(lane)} ${MIDDLE} ${MAIN + 4} ${MIDDLE}`);
  }
  return parts.join("");
}

function forkPath({ fork, begins }) {
  const out = fork ? `M${MAIN} ${MIDDLE}C${MAIN + 12} ${MIDDLE} ${WIDTH - 8} ${MIDDLE} ${WIDTH - 8} ${HEIGHT}` : "";
  return begins ? `${out}M${WIDTH - 8} 0C${WIDTH - 8} ${MIDDLE} ${MAIN + 12} ${MIDDLE} ${MAIN} ${MIDDLE}` : out;
}
