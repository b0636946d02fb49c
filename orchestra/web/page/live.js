/**
 * The live end of a run: snapshots are added as they are committed, and nothing that somebody looks at moves.
 */

import { announce } from "./dom.js";
import { number } from "./format.js";

const OUTLINE_MS = 700;
const RUN_MS = 500;
const TELL_MS = 3000;

export class Live {
  constructor(model) {
    this.model = model;
    this.frame = 0;
    this.changed = false;
    this.missing = false;
  }

  start() {
    const { model } = this;
    this.stop = model.source.events({ run: model.run, after: model.no }, (event) => this.heard(event));
  }

  end() {
    this.stop?.();
    clearTimeout(this.outlineTimer);
    clearTimeout(this.runTimer);
    clearTimeout(this.told);
    cancelAnimationFrame(this.frame);
  }

  heard(event) {
    const { model } = this;
    if (event.type === "snapshot") this.snapshot(event);
    else if (event.type === "run") this.renewRun();
    else if (event.type === "gone") model.tell("gone");
    else model.tell("link", { lost: event.type === "lost" });
  }

  snapshot(event) {
    const { model } = this;
    if (event.run !== model.run) return;
    if (!model.append(event)) {
      this.catchUp();
      return;
    }
    if (event.text?.length) model.tell("text", { text: event.text, seq: event.seq });
    this.changed = true;
    if (!this.frame) this.frame = requestAnimationFrame(() => this.show());
    this.outlineTimer ??= setTimeout(() => {
      this.outlineTimer = undefined;
      model.readOutline();
    }, OUTLINE_MS);
    this.renewRun();
  }

  /** Once a frame, however many came. A hidden page has no frames and catches up when it is seen again. */
  show() {
    const { model } = this;
    this.frame = 0;
    model.tell("live");
    if (model.follow) {
      model.select(model.newest, { why: "follow" });
    } else {
      this.told ??= setTimeout(() => {
        this.told = undefined;
        announce(`${number(model.fresh)} new snapshots`);
      }, TELL_MS);
    }
  }

  renewRun() {
    this.runTimer ??= setTimeout(async () => {
      this.runTimer = undefined;
      try {
        await this.model.refresh();
      } catch (failure) {
        if (failure.status === 404) this.model.tell("gone");
      }
    }, RUN_MS);
  }

  /** Something was missed: read the rows from the last one that is known. */
  async catchUp() {
    if (this.missing) return;
    this.missing = true;
    try {
      const { model } = this;
      await model.refresh(model.newest + 1);
      this.show();
    } catch {
      /* the next event tries again */
    } finally {
      this.missing = false;
    }
  }
}
