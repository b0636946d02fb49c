/**
 * The selected value: its path, who set it, the snapshots that changed it, and the value alone.
 */

import { Branches } from "./branches.js";
import { button, copy, h, replace, say } from "./dom.js";
import { brief, clock, pathText } from "./format.js";
import "./tree.js";

export class ValueBar {
  constructor(model) {
    this.model = model;
    this.path = h("code", { class: "value-path" });
    this.times = h("span", { class: "dim value-times" });
    this.answer = h("div", { class: "value-answer", role: "status", hidden: true });
    const acts = [
      button("Who set this?", () => this.blame(), { key: "w" }),
      button("Previous change", () => this.change(false), { sign: "◂", key: "[", class: "quiet" }),
      this.times,
      button("Next change", () => this.change(true), { sign: "▸", key: "]", class: "quiet" }),
      button("Copy path", () => copy(pathText(this.model.path), "Path"), { class: "quiet" }),
      button("Open alone", () => this.alone(), { class: "quiet" }),
      button("Let the value go", () => model.setPath(null), { sign: "×", key: "Esc", class: "quiet" }),
    ];
    const line = h("div", { class: "value-line" }, this.path, h("span", { class: "value-acts" }, ...acts));
    this.node = h("section", { class: "value-bar", hidden: true, aria: { label: "Selected value" } }, line, this.answer);
    model.on("path", () => this.renew()).on("select", () => this.count());
    this.renew();
  }

  renew() {
    const { path } = this.model;
    this.node.hidden = path === null;
    this.answer.hidden = true;
    this.seqs = null;
    this.asking?.abort(); // a long run takes the server seconds
    this.asking = new AbortController();
    say(this.times, "");
    if (path === null) return;
    say(this.path, pathText(path));
    this.path.title = pathText(path);
  }

  /** The snapshots that changed the value, read once for each path. */
  async touches() {
    const { model } = this;
    const path = model.path;
    if (!this.seqs) {
      const found = await model.source.touches(model.run, path, { signal: this.asking.signal });
      if (model.path === path) this.seqs = found.seqs;
    }
    return this.seqs ?? [];
  }

  count() {
    if (!this.seqs) return;
    const place = this.seqs.filter((seq) => seq <= this.model.selected).length;
    say(this.times, this.seqs.length ? `${place} of ${this.seqs.length}` : "never changed");
  }

  /** Go to the next or previous snapshot that changed the value. */
  async change(forward) {
    const { model } = this;
    if (model.path === null) return "Select a value first";
    try {
      const found = model.nextOf(await this.touches(), forward);
      if (found === null) return forward ? "No later change of this value" : "No earlier change of this value";
      model.select(found, { why: "jump" });
      this.count();
      return null;
    } catch (failure) {
      return failure.name === "AbortError" ? null : failure.message;
    }
  }

  async blame() {
    const { model } = this;
    const path = model.path;
    if (path === null) return;
    this.answer.hidden = false;
    replace(this.answer, h("span", { class: "dim", text: "looking…" }));
    try {
      const found = await model.source.blame(model.run, model.selected, path, { signal: this.asking.signal });
      if (model.path === path) replace(this.answer, ...this.told(found));
    } catch (failure) {
      if (failure.name !== "AbortError") replace(this.answer, h("span", { class: "tone-bad", text: failure.message }));
    }
  }

  told(found) {
    const { model } = this;
    if (found.seq === null || found.seq === undefined) return [h("span", { text: found.text ?? "Nobody set it: it was there from the beginning." })];
    const here = found.run === model.run;
    const where = here ? `#${found.seq}` : `${found.run}@${found.seq}`;
    const who = found.who || "the engine";
    const what = found.event?.sentence ?? found.event?.what ?? "";
    const go = here
      ? button(`Go to ${where}`, () => model.select(found.seq, { why: "jump" }))
      : h("span", { class: "mono", text: where });
    const values = found.was_there === false ? brief(found.after, 80) : `${brief(found.before, 60)} → ${brief(found.after, 60)}`;
    return [
      h("span", {}, h("b", { text: who }), ` set it at ${clock(found.at)}${what ? `: ${what}` : ""}`),
      go,
      h("span", { class: "mono value-change", text: values }),
    ];
  }

  /** The value alone, whole, in a dialog of its own. */
  async alone() {
    const { model } = this;
    const path = model.path;
    const tree = h("orchestra-tree", { id: "alone-tree", label: pathText(path) });
    const close = button("Close", () => dialog.close());
    const raw = model.source.rawLink
      ? h("a", { class: "button", href: model.source.rawLink(model.run, model.selected, path), download: "" }, "Download")
      : null;
    const head = h("header", { class: "alone-head" }, h("code", { text: `${pathText(path)} at #${model.selected}` }), raw, close);
    const dialog = h("dialog", { class: "alone-dialog", aria: { label: "A value alone" } }, head, tree);
    document.body.append(dialog);
    dialog.addEventListener("close", () => dialog.remove());
    dialog.showModal();
    const load = (side, where, offset) => model.state(model.run, model.selected, where, { offset });
    const branches = new Branches({ sides: 1, load });
    try {
      const found = await model.state(model.run, model.selected, path);
      branches.plant([{ path, label: pathText(path), a: undefined, b: found.value, sign: "", open: true }]);
      tree.show(branches, "one");
    } catch (failure) {
      replace(dialog, head, h("p", { class: "trouble", text: failure.message }));
    }
  }
}
