/** Signs that fonts do not agree on, as drawings of sixteen units. They take the colour of the text around them. */

import { svg } from "./dom.js";

const PATHS = {
  first: "M3.5 3v10M13 3.2v9.6L5.5 8z",
  back: "M12 3.2v9.6L4.5 8z",
  play: "M4.5 2.8v10.4L13 8z",
  pause: "M4.5 3h2.4v10H4.5zM9.1 3h2.4v10H9.1z",
  next: "M4 3.2v9.6L11.5 8z",
  last: "M12.5 3v10M3 3.2v9.6L10.5 8z",
  copy: "M6 5.5h7v8H6zM3.5 10.5v-8h6.5",
  theme: "M8 2.2a5.8 5.8 0 1 0 0 11.6zM8 2.2a5.8 5.8 0 0 1 0 11.6",
  menu: "M2.5 4.2h11M2.5 8h11M2.5 11.8h7",
};
const FILLED = new Set(["first", "back", "play", "pause", "next", "last"]);

/** A drawing by its name. */
export function icon(name) {
  const path = svg("path", { d: PATHS[name], class: FILLED.has(name) ? "icon-filled" : "icon-line" });
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true", focusable: "false" }, path);
}
