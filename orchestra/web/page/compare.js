/**
 * The bar at the bottom while A is pinned: A stays, B is whatever is selected. A may be of any run.
 */

import { button, h, replace, say } from "./dom.js";
import { count, number } from "./format.js";
import { referenceOf } from "./refs.js";
import { go } from "./route.js";

export class CompareBar {
  constructor(model) {
    this.model = model;
    this.a = h("input", {
      type: "text",
      class: "compare-a mono",
      autocomplete: "off",
      spellcheck: "false",
      list: "compare-runs",
      aria: { label: "A: a number of this run, or RUN@NUMBER of any run" },
      title: "A number of this run, or RUN@NUMBER of any run",
      on: { change: () => this.given(), keydown: (event) => event.key === "Escape" && this.a.blur() },
    });
    this.options = h("datalist", { id: "compare-runs" });
    this.b = h("b", { class: "mono" });
    this.counts = h("span", { class: "compare-counts", role: "status" });
    this.swap = button("Swap A and B", () => this.swapped(), { sign: "⇄" });
    this.node = h(
      "section",
      { class: "compare", hidden: true, aria: { label: "Compare" } },
      h("label", { class: "compare-side" }, h("b", { text: "A" }), this.a),
      this.options,
      this.swap,
      h("span", { class: "compare-side" }, h("b", { text: "B" }), this.b),
      this.counts,
      h("span", { class: "compare-acts" },
        button("Changes", () => model.setTab("changes"), { class: "quiet" }),
        button("Side by side", () => model.setTab("sides"), { class: "quiet", key: "d" }),
        button("Let A go", () => model.pin(null), { sign: "×", key: "Esc", class: "quiet" }),
      ),
    );
    model.on("pin", () => this.renew()).on("select", () => this.renew());
    this.renew();
  }

  renew() {
    const { pinned, run, selected } = this.model;
    this.node.hidden = !pinned;
    if (!pinned) return;
    if (document.activeElement !== this.a) this.a.value = pinned.run === run ? `#${pinned.seq}` : `${pinned.run}@${pinned.seq}`;
    say(this.b, `#${number(selected)}`);
    this.suggest();
    this.tally();
  }

  /** The other runs of the family are offered for A. */
  async suggest() {
    if (this.suggested) return;
    this.suggested = true;
    try {
      const { runs } = await this.model.source.family(this.model.info.family);
      const options = runs.filter((each) => each.run !== this.model.run).map((each) => h("option", { value: `${each.run}@${each.head}` }));
      replace(this.options, ...options);
    } catch {
      this.suggested = false;
    }
  }

  async tally() {
    const { model } = this;
    const { pinned, run, selected } = model;
    if (pinned.run === run && pinned.seq === selected) {
      say(this.counts, "A and B are the same: move B with the arrow keys");
      return;
    }
    try {
      const diff = await model.diff(pinned, { run, seq: selected });
      if (model.pinned === pinned && model.selected === selected) this.told(diff.counts, diff.truncated);
    } catch (failure) {
      if (model.pinned === pinned && model.selected === selected) say(this.counts, failure.message);
    }
  }

  told({ added, removed, changed }, truncated) {
    const parts = [
      h("span", { class: "tone-changed", text: `~ ${count(changed, "changed", "changed")}` }),
      h("span", { class: "tone-added", text: `+ ${count(added, "added", "added")}` }),
      h("span", { class: "tone-removed", text: `− ${count(removed, "removed", "removed")}` }),
      truncated && h("span", { class: "dim", text: "and more" }),
    ];
    replace(this.counts, ...parts.filter(Boolean));
  }

  given() {
    const ref = referenceOf(this.a.value, this.model.run);
    if (ref) this.model.pin(ref);
    else say(this.counts, "Write a number of this run, or RUN@NUMBER of any run.");
  }

  swapped() {
    const { model } = this;
    const { pinned } = model;
    const here = { run: model.run, seq: model.selected };
    if (pinned.run === model.run) {
      model.pin(here);
      model.select(pinned.seq, { why: "jump" });
    } else {
      go("run", pinned.run, { at: String(pinned.seq), pin: `${here.run}@${here.seq}`, tab: model.tab });
    }
  }
}
