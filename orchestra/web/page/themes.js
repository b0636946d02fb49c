/** The theme that was chosen: as the system, light or dark. theme.js sets it before the first paint. */

import { toast } from "./dom.js";

const THEMES = ["system", "light", "dark"];

/** Choose the next theme. */
export function nextTheme() {
  const root = document.documentElement;
  const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? "system") + 1) % THEMES.length];
  if (next === "system") delete root.dataset.theme;
  else root.dataset.theme = next;
  try {
    localStorage.setItem("orchestra-theme", next);
  } catch {
    /* it lasts as long as the page, then */
  }
  dispatchEvent(new Event("orchestra-theme"));
  toast(next === "system" ? "Theme: as the system" : `Theme: ${next}`);
}
