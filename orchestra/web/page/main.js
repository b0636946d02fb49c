/**
 * The page begins here: which view the address means, and where its data comes from.
 */

import { h, replace, trouble } from "./dom.js";
import { current, followLinks, link, onRoute } from "./route.js";
import "./run.js";
import "./runs.js";
import { Failure, HttpSource } from "./source.js";
import "./workflow.js";

function viewOf(route, source) {
  if (route.page === "unknown") {
    const failure = new Failure(404, "NoSuchPage", "There is nothing at this address.");
    return h("div", { class: "alone" }, trouble(failure), h("a", { href: link("runs"), data: { route: "" } }, "All runs"));
  }
  const names = { runs: "orchestra-runs", run: "orchestra-run", workflow: "orchestra-workflow" };
  const view = document.createElement(names[route.page]);
  view.source = source;
  view.run = route.run;
  view.params = route.params;
  return view;
}

/** Show the view of the address, and of every address that follows. */
export function start(source = new HttpSource()) {
  const main = document.getElementById("main");
  let shown = null;
  const show = () => {
    const route = current();
    const kept = shown?.page === route.page && shown?.run === route.run && main.firstElementChild?.moveTo;
    shown = route;
    if (kept) {
      main.firstElementChild.moveTo(route.params);
    } else {
      document.title = "orchestra";
      replace(main, viewOf(route, source));
    }
  };
  followLinks();
  onRoute(show);
  show();
}

if (!document.documentElement.dataset.bundle) {
  start();
}
