/** Where the page of a bundle begins: it reads the data that came with it, and shows the run. */

import { BundleSource, readData } from "./bundle.js";
import { h, replace } from "./dom.js";
import { start } from "./main.js";
import { current, settle } from "./route.js";

async function open() {
  const data = await readData();
  if (current().page === "runs" && !location.hash) {
    settle("run", data.run.run);
  }
  start(new BundleSource(data));
}

open().catch((error) => {
  const said = [h("strong", { text: "This bundle cannot be read." }), h("p", { text: `Was the file saved whole? ${error.message}` })];
  replace(document.getElementById("main"), h("div", { class: "trouble", role: "alert" }, ...said));
});
