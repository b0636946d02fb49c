/** A small line of numbers between 0 and 1, such as a run's confidence, as an SVG of fixed size. */

import { svg } from "./dom.js";
import { confidence } from "./format.js";

const WIDTH = 72;
const HEIGHT = 18;
const EDGE = 2;

/** @param {(number|null)[]} values gaps are null */
export function sparkline(values) {
  const points = (values || []).map((value, at) => [at, value]).filter(([, value]) => value !== null);
  const label = points.length ? `confidence from ${confidence(points[0][1])} to ${confidence(points.at(-1)[1])}` : "no confidence reported";
  const box = svg("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, role: "img", "aria-label": label });
  if (!points.length) return box;
  box.append(svg("path", { class: "spark-floor", d: `M${EDGE} ${HEIGHT - 0.5}H${WIDTH - EDGE}` }));
  const last = Math.max(1, values.length - 1);
  const places = points.map(([at, value]) => [EDGE + (at / last) * (WIDTH - 2 * EDGE), HEIGHT - EDGE - clamp(value) * (HEIGHT - 2 * EDGE)]);
  if (places.length > 1) {
    box.append(svg("polyline", { class: "spark-line", points: places.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ") }));
  }
  const [x, y] = places.at(-1);
  box.append(svg("circle", { class: "spark-end", cx: x.toFixed(1), cy: y.toFixed(1), r: 2 }));
  return box;
}

function clamp(value) {
  return Math.min(1, Math.max(0, value));
}
