/**
 * The strip: the whole run at a glance, and the control to move through it.
 *
 * Drag to scrub, shift and drag (or turn the wheel) to zoom, double click to see everything again; the bar below is
 * the overview. What moves with every step is two small elements; the pictures are drawn again only when data or view change.
 */

import { sharp } from "./canvas.js";
import { FLAG, lowerBound } from "./columns.js";
import { framed, h, say } from "./dom.js";
import { isEmpty, passes } from "./filter.js";
import { clock, confidence, count, number, words } from "./format.js";
import { overview } from "./overview.js";
import { Scale } from "./scale.js";
import { signOf } from "./signs.js";
import { HEIGHT, lanesOf, MARK_ROW, PAD, palette, Picture } from "./strip_draw.js";

const SNAP = 7;
const ZOOM = 1.25;
const PREVIEW_MS = 70;
const LIVE_MS = 200;
const FOLD_MS = 3000;

class Strip extends HTMLElement {
  view = { from: 0, to: 1 };
  whole = true;

  connectedCallback() {
    this.scale = new Scale(this.model.columns);
    this.canvas = h("canvas", { class: "strip-canvas", aria: { hidden: "true" } });
    this.playhead = h("div", { class: "strip-playhead" });
    this.pin = h("div", { class: "strip-pin", hidden: true }, h("span", { text: "A" }));
    this.hair = h("div", { class: "strip-hair", hidden: true });
    this.band = h("div", { class: "strip-band", hidden: true });
    this.tip = h("div", { class: "strip-tip", hidden: true, aria: { hidden: "true" } });
    const parts = [this.canvas, this.band, this.pin, this.hair, this.playhead];
    this.stage = h("div", { class: "strip-stage", role: "slider", tabindex: "0", aria: { label: "Snapshot" } }, ...parts);
    this.overview = overview(this);
    this.append(this.stage, this.overview.node, this.tip);
    this.soon = framed(() => this.draw());
    this.pointer();
    this.listen();
    this.sized = new ResizeObserver(() => this.soon());
    this.sized.observe(this.stage);
    this.renew();
  }

  disconnectedCallback() {
    this.sized?.disconnect();
    clearTimeout(this.growing);
    removeEventListener("orchestra-theme", this.recolour);
    this.scheme?.removeEventListener("change", this.recolour);
  }

  listen() {
    this.recolour = () => {
      this.colours = null;
      this.soon();
    };
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.scheme.addEventListener("change", this.recolour);
    addEventListener("orchestra-theme", this.recolour);
    this.model
      .on("columns", () => this.renew())
      .on("live", () => this.grown())
      .on("outline", () => this.soon())
      .on("filter", () => this.soon())
      .on("marks", () => this.soon())
      .on("run", () => this.soon())
      .on("pin", () => this.place())
      .on("select", ({ why }) => {
        this.keepInView(why);
        this.place();
      });
  }

  /** The rows have changed: work the positions out again; a view of everything stays one. */
  renew() {
    this.scale.renew();
    if (this.whole) this.view = { from: 0, to: this.scale.total };
    this.soon();
  }

  /** Snapshots arrive: the picture follows a few times a second, the folds now and then. */
  grown() {
    this.scale.extend();
    if (this.whole) this.view = { from: 0, to: this.scale.total };
    this.growing ??= setTimeout(() => {
      this.growing = undefined;
      if (performance.now() - (this.folded ?? 0) > FOLD_MS) {
        this.folded = performance.now();
        this.renew();
      } else {
        this.soon();
      }
    }, LIVE_MS);
  }

  toggleScale() {
    this.scale.mode = this.scale.mode === "time" ? "steps" : "time";
    this.whole = true;
    this.renew();
    this.model.tell("scale", { mode: this.scale.mode });
  }

  // --- drawing

  draw() {
    const width = this.stage.clientWidth;
    if (!width || !this.isConnected) return;
    this.width = width;
    this.colours ??= palette(this);
    const context = sharp(this.canvas, width, HEIGHT);
    const { model } = this;
    this.lanes = lanesOf(model.outline.bars);
    this.picture = new Picture(context, {
      width,
      scale: this.scale,
      view: this.view,
      columns: model.columns,
      outline: model.outline,
      lanes: this.lanes,
      marks: model.marks,
      forks: (model.info?.forks ?? []).map((fork) => fork.seq).sort((a, b) => a - b),
      shown: isEmpty(model.filter) ? null : passes(model.filter, model.columns),
      colours: this.colours,
    });
    this.picture.draw();
    this.overview.draw();
    this.place();
  }

  xOf(i) {
    const factor = (this.width - 2 * PAD) / Math.max(1e-9, this.view.to - this.view.from);
    return PAD + (this.scale.pos[i] - this.view.from) * factor;
  }

  positionAt(x) {
    const factor = (this.width - 2 * PAD) / Math.max(1e-9, this.view.to - this.view.from);
    return this.view.from + (x - PAD) / factor;
  }

  /** Put the playhead, and say where it is. */
  place() {
    const { model } = this;
    if (!this.width || model.index < 0) return;
    const x = this.xOf(model.index);
    this.playhead.style.transform = `translateX(${x.toFixed(1)}px)`;
    this.playhead.hidden = x < -1 || x > this.width + 1;
    const pinned = model.pinned?.run === model.run ? model.columns.indexOf(model.pinned.seq) : -1;
    this.pin.hidden = pinned < 0;
    if (pinned >= 0) this.pin.style.transform = `translateX(${this.xOf(pinned).toFixed(1)}px)`;
    this.overview.place();
    this.speak();
  }

  speak() {
    const { columns, selected, index } = this.model;
    const { word } = signOf(columns.flags[index], columns.triggersOf(index));
    const parts = [
      `snapshot ${number(selected)} of ${number(this.model.newest)}`,
      columns.agentsOf(index).slice(0, 3).join(" and "),
      columns.flags[index] & FLAG.error ? "error" : word,
    ];
    const set = (name, value) => this.stage.setAttribute(`aria-${name}`, String(value));
    set("valuemin", columns.count ? columns.seqAt(0) : 0);
    set("valuemax", this.model.newest);
    set("valuenow", selected);
    set("valuetext", parts.filter(Boolean).join(", "));
  }

  // --- zoom

  setView(from, to) {
    const least = this.scale.total / 1e6;
    const width = Math.min(this.scale.total, Math.max(least, to - from));
    const start = Math.min(Math.max(0, from), this.scale.total - width);
    this.view = { from: start, to: start + width };
    this.whole = width >= this.scale.total * 0.999;
    this.soon();
  }

  showAll() {
    this.setView(0, this.scale.total);
  }

  zoomAt(x, factor) {
    const centre = this.positionAt(x);
    this.setView(centre - (centre - this.view.from) * factor, centre + (this.view.to - centre) * factor);
  }

  keepInView(why) {
    if (this.whole || why === "strip" || this.model.index < 0) return;
    const here = this.scale.pos[this.model.index];
    const width = this.view.to - this.view.from;
    if (here < this.view.from || here > this.view.to) this.setView(here - width / 2, here + width / 2);
  }

  // --- pointer

  pointer() {
    const { stage } = this;
    stage.addEventListener("pointerdown", (event) => this.pressed(event));
    stage.addEventListener("pointermove", (event) => this.moved(event));
    stage.addEventListener("pointerup", (event) => this.released(event));
    stage.addEventListener("pointercancel", (event) => this.released(event));
    stage.addEventListener("pointerleave", () => this.hover(null));
    stage.addEventListener("dblclick", () => this.showAll());
    stage.addEventListener("wheel", (event) => this.wheeled(event), { passive: false });
  }

  at(event) {
    const box = this.stage.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  pressed(event) {
    if (event.button !== 0) return;
    this.stage.setPointerCapture(event.pointerId);
    const { x, y } = this.at(event);
    this.brush = event.shiftKey ? { from: x, to: x } : null;
    this.scrubbing = !this.brush;
    if (this.scrubbing) this.scrub(x, y);
    this.stage.focus({ preventScroll: true });
    event.preventDefault();
  }

  moved(event) {
    const { x, y } = this.at(event);
    if (this.brush) {
      this.brush.to = x;
      this.showBand();
    } else if (this.scrubbing) {
      this.scrub(x, -1);
    }
    this.hover({ x, y });
  }

  released() {
    if (this.brush && Math.abs(this.brush.to - this.brush.from) > 4) {
      const [low, high] = [this.brush.from, this.brush.to].sort((a, b) => a - b);
      this.setView(this.positionAt(low), this.positionAt(high));
    }
    this.brush = null;
    this.scrubbing = false;
    this.band.hidden = true;
  }

  showBand() {
    const [low, high] = [this.brush.from, this.brush.to].sort((a, b) => a - b);
    this.band.hidden = false;
    this.band.style.transform = `translateX(${low}px)`;
    this.band.style.width = `${high - low}px`;
  }

  wheeled(event) {
    event.preventDefault();
    const { x } = this.at(event);
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const width = this.view.to - this.view.from;
      const by = (event.deltaX / this.width) * width;
      this.setView(this.view.from + by, this.view.to + by);
    } else if (event.deltaY) {
      this.zoomAt(x, event.deltaY > 0 ? ZOOM : 1 / ZOOM);
    }
  }

  /** The shown row nearest to a pixel; a mark close by wins when the pointer is on the marks. */
  rowAt(x, y) {
    const { model } = this;
    const nearest = this.scale.nearest(this.positionAt(x));
    if (y >= MARK_ROW.top && y <= MARK_ROW.bottom) {
      const marked = this.markNear(x);
      if (marked >= 0) return marked;
    }
    if (model.visible.length === model.columns.count || !model.visible.length) return nearest;
    const after = lowerBound(model.visible, nearest);
    const candidates = [model.visible[after - 1], model.visible[after]].filter((i) => i !== undefined);
    return candidates.reduce((a, b) => (Math.abs(this.xOf(a) - x) <= Math.abs(this.xOf(b) - x) ? a : b));
  }

  markNear(x) {
    const { model } = this;
    const forks = (model.info?.forks ?? []).map((fork) => fork.seq);
    const seqs = [...model.outline.errors, ...model.outline.jumps.map((jump) => jump.seq), ...forks, ...model.marks.seqs];
    let best = -1;
    let near = SNAP;
    for (const seq of seqs) {
      const i = model.columns.indexOf(seq);
      const away = i < 0 ? Infinity : Math.abs(this.xOf(i) - x);
      if (away < near) {
        near = away;
        best = i;
      }
    }
    return best;
  }

  scrub(x, y) {
    this.model.select(this.model.columns.seqAt(this.rowAt(x, y)), { why: "strip" });
  }

  // --- preview

  hover(point) {
    if (!point || !this.width || !this.model.columns.count) {
      this.hair.hidden = true;
      this.tip.hidden = true;
      clearTimeout(this.previewing);
      return;
    }
    const i = this.rowAt(point.x, point.y);
    const x = this.xOf(i);
    this.hair.hidden = false;
    this.hair.style.transform = `translateX(${x.toFixed(1)}px)`;
    this.preview(i, x);
  }

  preview(i, x) {
    const { model } = this;
    const seq = model.columns.seqAt(i);
    this.tell(i);
    const room = this.clientWidth;
    const half = this.tip.offsetWidth / 2;
    this.tip.style.transform = `translateX(${Math.round(Math.min(room - half - 4, Math.max(half + 4, x)) - half)}px)`;
    clearTimeout(this.previewing);
    if (!model.headlines.get(seq)) {
      this.previewing = setTimeout(async () => {
        await model.headlines.ask(seq, seq);
        if (!this.tip.hidden) this.tell(i);
      }, PREVIEW_MS);
    }
  }

  tell(i) {
    const { columns, headlines } = this.model;
    const seq = columns.seqAt(i);
    const headline = headlines.get(seq);
    const { sign, word } = signOf(columns.flags[i], columns.triggersOf(i));
    const agents = columns.agentsOf(i);
    const who = agents.length > 2 ? count(agents.length, "agent") : agents.join(", ");
    const sure = headline?.confidence === null || !headline ? "" : `confidence ${confidence(headline.confidence)}`;
    this.tip.hidden = false;
    this.lines ??= [h("div", { class: "tip-head" }), h("div", { class: "tip-main" }), h("div", { class: "tip-foot" })];
    if (!this.tip.firstChild) this.tip.append(...this.lines);
    say(this.lines[0], [`${sign} #${seq}`, clock(columns.atOf(i)), word].filter(Boolean).join("  "));
    say(this.lines[1], headline?.main ?? columns.triggersOf(i).map(words).join(", "));
    say(this.lines[2], [who, columns.phaseOf(i), sure].filter(Boolean).join(" · "));
  }
}

customElements.define("orchestra-strip", Strip);
