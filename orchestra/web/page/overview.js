/**
 * The bar below the strip: the whole run in small, and the window that the strip shows of it.
 */

import { sharp } from "./canvas.js";
import { FLAG } from "./columns.js";
import { h } from "./dom.js";
import { PAD } from "./strip_draw.js";

const HIGH = 14;
const EDGE = 7;

/** The overview of a strip: its element, and how to draw and place it. */
export function overview(strip) {
  const canvas = h("canvas", { class: "overview-canvas", aria: { hidden: "true" } });
  const frame = h("div", { class: "overview-window" });
  const head = h("div", { class: "overview-head" });
  const title = "Overview: drag to zoom, drag the window to move it, double click to see everything";
  const node = h("div", { class: "overview", title }, canvas, frame, head);
  let known = 0; // asking an element for its width makes the browser lay the page out
  const width = () => (known || node.clientWidth) - 2 * PAD;
  const x = (position) => PAD + (position / strip.scale.total) * width();
  const position = (pixel) => ((pixel - PAD) / Math.max(1, width())) * strip.scale.total;

  const place = () => {
    const from = x(strip.view.from);
    const to = x(strip.view.to);
    frame.style.transform = `translateX(${from.toFixed(1)}px)`;
    frame.style.width = `${Math.max(4, to - from).toFixed(1)}px`;
    frame.classList.toggle("whole", strip.whole);
    const index = strip.model.index;
    head.style.transform = `translateX(${(index < 0 ? PAD : x(strip.scale.pos[index])).toFixed(1)}px)`;
  };

  const draw = () => {
    const wide = node.clientWidth;
    known = wide;
    if (!wide) return;
    const context = sharp(canvas, wide, HIGH);
    context.clearRect(0, 0, wide, HIGH);
    density(context, strip, wide, x);
    place();
  };

  drag(node, strip, { x, position });
  return { node, draw, place };
}

function density(context, strip, wide, x) {
  const { columns } = strip.model;
  const many = new Float64Array(wide + 1);
  const bad = new Uint8Array(wide + 1);
  for (let i = 0; i < columns.count; i += 1) {
    const pixel = x(strip.scale.pos[i]) | 0;
    many[pixel] += 1;
    if (columns.flags[i] & FLAG.error) bad[pixel] = 1;
  }
  let most = 1;
  for (const value of many) most = Math.max(most, value);
  context.fillStyle = strip.colours.bar;
  for (let pixel = 0; pixel <= wide; pixel += 1) {
    if (!many[pixel]) continue;
    const tall = 3 + (Math.sqrt(many[pixel]) / Math.sqrt(most)) * (HIGH - 6);
    context.fillStyle = bad[pixel] ? strip.colours.bad : strip.colours.bar;
    context.fillRect(pixel, HIGH - 1 - tall, 1, tall);
  }
}

/** Drag an edge, the window, or a new one. */
function drag(node, strip, { x, position }) {
  let grip = null;
  const pixel = (event) => event.clientX - node.getBoundingClientRect().left;
  node.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    node.setPointerCapture(event.pointerId);
    const at = pixel(event);
    const from = x(strip.view.from);
    const to = x(strip.view.to);
    const kind = Math.abs(at - from) < EDGE && !strip.whole ? "from"
      : Math.abs(at - to) < EDGE && !strip.whole ? "to"
      : at > from && at < to && !strip.whole ? "move"
      : "new";
    grip = { kind, at, view: { ...strip.view } };
    event.preventDefault();
  });
  node.addEventListener("pointermove", (event) => {
    if (!grip) return;
    const here = position(pixel(event));
    const began = position(grip.at);
    const { from, to } = grip.view;
    if (grip.kind === "from") strip.setView(Math.min(here, to), to);
    else if (grip.kind === "to") strip.setView(from, Math.max(here, from));
    else if (grip.kind === "move") strip.setView(from + here - began, to + here - began);
    else if (Math.abs(pixel(event) - grip.at) > 4) strip.setView(Math.min(here, began), Math.max(here, began));
  });
  const end = () => {
    grip = null;
  };
  node.addEventListener("pointerup", end);
  node.addEventListener("pointercancel", end);
  node.addEventListener("dblclick", () => strip.showAll());
}
