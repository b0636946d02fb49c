/**
 * The strip's picture: phases, a lane for each agent, marks, confidence. Work grows with the pixels, not with the run:
 * whatever falls on one pixel is put together first.
 */

import { FLAG, lowerBound } from "./columns.js";
import { duration } from "./format.js";

export const HEIGHT = 96;
export const PAD = 10;
const PHASES = { top: 0, height: 15 };
const LANES = { top: 17, height: 42 };
const MARKS = { top: 61, height: 13 };
const CURVE = { top: 76, height: 19 };
const BAR = { least: 2, most: 13 };
export const MARK_ROW = { top: MARKS.top - 2, bottom: MARKS.top + MARKS.height + 3 };

/** How attempts end that brought neither a result nor a failure. */
const LEFT = new Set(["skipped", "retired", "abandoned"]);

const NAMES = [
  "text", "dim", "faint", "line", "line-strong", "accent", "bad", "warn", "mark", "bar", "bar-strong", "bar-bad",
  "curve", "phase-a", "phase-b", "panel", "hover",
];

/** The colours of the theme that is on. */
export function palette(node) {
  const style = getComputedStyle(node);
  const found = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  return { ...found, sans: style.getPropertyValue("--sans").trim() };
}

/** A lane for each agent, in the order they came; one that comes after another has left for good may take its lane. */
export function lanesOf(bars) {
  const lives = new Map();
  for (const bar of bars) {
    const life = lives.get(bar.agent) ?? { from: bar.from, to: bar.from };
    life.to = Math.max(life.to, bar.to ?? Infinity);
    lives.set(bar.agent, life);
  }
  const lanes = new Map();
  const ends = [];
  for (const [agent, life] of [...lives].sort(([, a], [, b]) => a.from - b.from)) {
    let lane = ends.findIndex((end) => end <= life.from);
    if (lane < 0) lane = ends.length;
    ends[lane] = life.to;
    lanes.set(agent, lane);
  }
  return { of: lanes, many: ends.length };
}

/** Where a lane is drawn. */
export function laneBox(number, many) {
  const step = LANES.height / Math.max(1, many);
  const height = Math.min(BAR.most, Math.max(BAR.least, step - (step > 5 ? 2 : 0.5)));
  return { top: LANES.top + number * Math.min(step, BAR.most + 3), height };
}

/**
 * A picture is drawn from: width, scale, view {from, to}, columns, outline, lanes, marks, forks, shown (null or a test of
 * rows), colours.
 */
export class Picture {
  constructor(context, given) {
    Object.assign(this, given);
    this.context = context;
    this.factor = (this.width - 2 * PAD) / Math.max(1e-9, this.view.to - this.view.from);
  }

  /** The pixel of a row. */
  x(i) {
    return PAD + (this.scale.pos[i] - this.view.from) * this.factor;
  }

  xOfSeq(seq) {
    return this.x(Math.max(0, this.columns.atOrBefore(seq)));
  }

  /** The pixel where something ends that has not ended yet. */
  get end() {
    return this.columns.count ? this.x(this.columns.count - 1) : PAD;
  }

  draw() {
    this.context.clearRect(0, 0, this.width, HEIGHT);
    if (!this.columns.count) return;
    this.phases();
    this.folds();
    this.bars();
    this.ticks();
    this.curve();
    this.symbols();
  }

  phases() {
    const { context, colours } = this;
    context.font = `600 10px ${colours.sans}`;
    context.textBaseline = "middle";
    this.outline.phases.forEach((phase, n) => {
      const from = Math.max(0, this.xOfSeq(phase.from));
      const to = Math.min(this.width, phase.to === null ? this.end : this.xOfSeq(phase.to));
      if (to < 0 || from > this.width) return;
      const width = Math.max(1, to - from);
      context.fillStyle = n % 2 ? colours["phase-b"] : colours["phase-a"];
      context.fillRect(from, PHASES.top, width, PHASES.height);
      context.fillStyle = colours["line-strong"];
      context.fillRect(from, PHASES.top, 1, PHASES.height);
      const name = phase.visit > 1 ? `${phase.phase}.${phase.visit}` : phase.phase;
      this.label(name, from + 5, PHASES.top + PHASES.height / 2 + 0.5, width - 8, colours.dim);
    });
  }

  label(text, x, y, room, colour) {
    const { context } = this;
    if (room < 18) return;
    let shown = text.length > 120 ? `${text.slice(0, 119)}…` : text;
    let width = context.measureText(shown).width;
    if (width > room) {
      const keep = Math.floor((shown.length * (room - 8)) / width);
      if (keep < 3) return;
      shown = `${shown.slice(0, keep)}…`;
      width = context.measureText(shown).width;
    }
    context.fillStyle = colour;
    context.fillText(shown, x, y);
  }

  folds() {
    const { context, colours } = this;
    context.font = `10px ${colours.sans}`;
    for (const fold of this.scale.folds) {
      const from = PAD + (fold.from - this.view.from) * this.factor;
      const to = PAD + (fold.to - this.view.from) * this.factor;
      if (to < 0 || from > this.width) continue;
      context.fillStyle = colours.hover;
      context.fillRect(from + 1, LANES.top, Math.max(1, to - from - 2), HEIGHT - LANES.top);
      context.strokeStyle = colours["line-strong"];
      context.setLineDash([2, 3]);
      context.beginPath();
      for (const x of [from + 1.5, to - 1.5]) {
        context.moveTo(Math.round(x) + 0.5, LANES.top);
        context.lineTo(Math.round(x) + 0.5, HEIGHT);
      }
      context.stroke();
      context.setLineDash([]);
      const text = duration(fold.micros);
      const room = to - from - 4;
      const width = context.measureText(text).width;
      if (width < room) {
        context.fillStyle = colours.dim;
        context.fillText(text, (from + to - width) / 2, LANES.top + LANES.height / 2);
      } else if (room > 8) {
        context.fillStyle = colours.dim;
        context.fillText("⋯", (from + to) / 2 - 5, LANES.top + LANES.height / 2);
      }
    }
  }

  bars() {
    const { context, colours, lanes } = this;
    const last = new Float64Array(lanes.many).fill(-1);
    context.font = `10px ${colours.sans}`;
    for (const bar of this.outline.bars) {
      const number = lanes.of.get(bar.agent);
      const from = this.xOfSeq(bar.from);
      const to = Math.max(from + 2, bar.to === null ? this.end : this.xOfSeq(bar.to));
      if (to < 0 || from > this.width || to <= last[number] + 0.5) continue;
      last[number] = to;
      const { top, height } = laneBox(number, lanes.many);
      const bad = bar.outcome === "failed";
      context.fillStyle = bad ? colours["bar-bad"] : LEFT.has(bar.outcome) ? colours["line-strong"] : colours.bar;
      const left = Math.max(-2, from);
      const width = Math.min(this.width + 2, to) - left;
      context.beginPath();
      context.roundRect(left, top, Math.max(2, width - 1), height, Math.min(2, height / 2));
      context.fill();
      if (bad && height > 4) this.cross(to - 5, top + height / 2, colours.panel);
      if (height >= 10) {
        const name = bar.attempt > 1 ? `${bar.agent} · attempt ${bar.attempt}` : bar.agent;
        this.label(name, left + 4, top + height / 2 + 0.5, width - (bad ? 18 : 8), colours.text);
      }
    }
  }

  /** A tick for every snapshot that passes the filter, as dark as there are many. */
  ticks() {
    const { context, colours, columns, shown } = this;
    const [low, high] = this.window();
    const wide = Math.ceil(this.width) + 1;
    const many = new Uint16Array(wide);
    for (let i = low; i < high; i += 1) {
      if (shown && !shown(i)) continue;
      const x = this.x(i) | 0;
      if (x >= 0 && x < wide && many[x] < 65535) many[x] += 1;
    }
    context.fillStyle = shown ? colours.accent : colours.faint;
    const bottom = MARKS.top + MARKS.height;
    for (let x = 0; x < wide; x += 1) {
      if (many[x]) context.fillRect(x, bottom - 3, 1, many[x] > 3 ? 4 : 3);
    }
    this.columnsSeen = columns.count;
  }

  /** The rows in view. */
  window() {
    const low = Math.max(0, this.scale.before(this.view.from) - 1);
    const high = Math.min(this.columns.count, this.scale.before(this.view.to) + 2);
    return [low, high];
  }

  curve() {
    const { context, colours, outline } = this;
    const { seq, value } = outline.confidence;
    const bottom = CURVE.top + CURVE.height - 1;
    const lowest = lowestOf(outline);
    const y = (v) => bottom - ((v - lowest) / (1 - lowest)) * (CURVE.height - 2);
    context.lineWidth = 1;
    for (const threshold of outline.thresholds) {
      context.strokeStyle = colours["line-strong"];
      context.setLineDash([3, 3]);
      context.beginPath();
      context.moveTo(0, Math.round(y(threshold)) + 0.5);
      context.lineTo(this.width, Math.round(y(threshold)) + 0.5);
      context.stroke();
      context.setLineDash([]);
    }
    if (!seq.length) return;
    const points = bucketed(seq, value, (s) => this.xOfSeq(s), this.width);
    context.strokeStyle = colours.curve;
    context.lineWidth = 1.5;
    context.beginPath();
    points.forEach(({ x, v }, n) => {
      if (n === 0) {
        context.moveTo(x, y(v));
      } else {
        context.lineTo(x, y(points[n - 1].v));
        context.lineTo(x, y(v));
      }
    });
    context.lineTo(this.end, y(points[points.length - 1].v));
    context.stroke();
    context.lineWidth = 1;
    this.under(points, y, bottom);
  }

  /** The curve is filled below, and red where it is under the first threshold. */
  under(points, y, bottom) {
    const { context, colours, outline } = this;
    const least = outline.thresholds.length ? Math.max(...outline.thresholds) : -1;
    context.globalAlpha = 0.16;
    points.forEach(({ x, v }, n) => {
      const next = n + 1 < points.length ? points[n + 1].x : this.end;
      context.fillStyle = v < least ? colours.bad : colours.curve;
      context.fillRect(x, y(v), Math.max(0.5, next - x), bottom - y(v));
    });
    context.globalAlpha = 1;
  }

  // --- marks

  symbols() {
    const { context, colours, columns, outline, marks, forks } = this;
    const y = MARKS.top + 5;
    const line = (x, colour, top, bottom) => {
      context.fillStyle = colour;
      context.fillRect(Math.round(x), top, 1, bottom - top);
    };
    for (const x of this.pixels(marks.seqs)) line(x, colours.mark, PHASES.height, HEIGHT);
    for (const jump of outline.jumps) this.jump(jump);
    for (const x of this.pixels(forks)) this.triangle(x, y, colours.accent);
    const [low, high] = this.window();
    let last = -9;
    for (let i = low; i < high; i += 1) {
      if (columns.flags[i] & (FLAG.pinned | FLAG.note)) {
        const x = this.x(i);
        if (x - last > 2) this.diamond((last = x), y, colours.mark);
      }
    }
    for (const x of this.pixels(outline.errors)) {
      line(x, colours["bar-bad"], LANES.top, MARKS.top);
      this.cross(x, y, colours.bad);
    }
  }

  /** The pixels in view that these numbers fall on, each once. */
  *pixels(seqs) {
    let last = -9;
    const [low, high] = this.window();
    const { columns } = this;
    if (!columns.count) return;
    const first = columns.seqAt(Math.min(low, columns.count - 1));
    const end = columns.seqAt(Math.max(0, high - 1));
    for (let n = lowerBound(seqs, first); n < seqs.length && seqs[n] <= end; n += 1) {
      const x = this.xOfSeq(seqs[n]);
      if (x - last >= 1) {
        last = x;
        yield x;
      }
    }
  }

  cross(x, y, colour) {
    const { context } = this;
    context.strokeStyle = colour;
    context.lineWidth = 1.8;
    context.beginPath();
    context.moveTo(x - 3, y - 3);
    context.lineTo(x + 3, y + 3);
    context.moveTo(x + 3, y - 3);
    context.lineTo(x - 3, y + 3);
    context.stroke();
    context.lineWidth = 1;
  }

  triangle(x, y, colour) {
    this.shape(colour, [x, y - 4], [x + 4, y + 3.5], [x - 4, y + 3.5]);
  }

  diamond(x, y, colour) {
    this.shape(colour, [x, y - 4.5], [x + 4, y], [x, y + 4.5], [x - 4, y]);
  }

  shape(colour, ...points) {
    const { context } = this;
    context.fillStyle = colour;
    context.beginPath();
    points.forEach(([x, y], n) => (n ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.fill();
  }

  /** A rollback: an arc from where it was done back to where it went. */
  jump({ seq, to }) {
    const { context, colours } = this;
    const from = this.xOfSeq(seq);
    const back = this.xOfSeq(to);
    if (Math.max(from, back) < 0 || Math.min(from, back) > this.width) return;
    const y = MARKS.top + 8;
    const lift = Math.min(9, 3 + Math.abs(from - back) / 8);
    context.strokeStyle = colours.warn;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(from, y);
    context.bezierCurveTo(from, y - lift, back, y - lift, back, y);
    context.stroke();
    context.lineWidth = 1;
    this.shape(colours.warn, [back, y + 3], [back - 3.5, y - 2.5], [back + 3.5, y - 2.5]);
  }
}

/** Where the confidence scale begins: a little below all that it shows. */
function lowestOf({ confidence, thresholds }) {
  let low = 1;
  for (const value of confidence.value) if (value !== null && value < low) low = value;
  for (const value of thresholds) if (value < low) low = value;
  return Math.max(0, Math.min(0.9, low - 0.15));
}

/** At most four points a pixel: first, lowest, highest and last of what falls on it. */
function bucketed(seq, value, xOf, width) {
  const points = [];
  const many = seq.length;
  if (many <= width * 4) {
    for (let n = 0; n < many; n += 1) if (value[n] !== null) points.push({ x: xOf(seq[n]), v: value[n] });
    return points;
  }
  let pixel = null;
  for (let n = 0; n < many; n += 1) {
    if (value[n] === null) continue;
    const x = xOf(seq[n]);
    const at = Math.floor(x);
    if (!pixel || pixel.at !== at) {
      pixel = { at, low: value[n], high: value[n] };
      points.push({ x, v: value[n] });
    } else if (value[n] < pixel.low || value[n] > pixel.high) {
      pixel.low = Math.min(pixel.low, value[n]);
      pixel.high = Math.max(pixel.high, value[n]);
      points.push({ x, v: value[n] });
    }
  }
  return points;
}
