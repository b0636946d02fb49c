/**
 * One line for each snapshot that is in sight, asked for by window, with a little more on either side.
 */

import { Lru } from "./lru.js";

const KEPT = 4000;
const BLOCK = 100;
const NEAR = 50;
const FEW = 3;

export class Headlines {
  constructor(model) {
    this.model = model;
    this.rows = new Lru(KEPT);
    this.asked = new Set();
    this.wanted = null;
  }

  get(seq) {
    return this.rows.get(seq);
  }

  put(row) {
    this.rows.set(row.seq, row);
  }

  /** Make sure that these numbers (sorted) are there, on the way, or asked for as soon as nothing else is waited for. */
  async want(seqs) {
    const waits = this.wanted !== null;
    this.wanted = seqs;
    if (waits) {
      return;
    }
    await this.model.letPass();
    const missing = this.wanted.filter((seq) => !this.rows.has(seq));
    this.wanted = null;
    for (const [first, last] of ranges(missing)) {
      this.ask(first, last);
    }
  }

  async ask(first, last) {
    const key = `${first}-${last}`;
    if (this.asked.has(key)) {
      return;
    }
    this.asked.add(key);
    try {
      const { rows } = await this.model.source.headlines(this.model.run, first, last);
      rows.forEach((row) => this.put(row));
      this.model.tell("headlines", { first, last });
    } catch (failure) {
      this.model.tell("failure", { failure, what: "headlines" });
    } finally {
      setTimeout(() => this.asked.delete(key), 2000);
    }
  }
}

/** Whole blocks where numbers stand close together, single ranges where they are far apart. */
export function ranges(seqs) {
  const found = [];
  for (const seq of seqs) {
    const last = found[found.length - 1];
    if (last && seq <= last[1] + NEAR && seq - last[0] < 2 * BLOCK) {
      last[1] = Math.max(last[1], seq);
    } else {
      found.push([seq, seq]);
    }
  }
  if (found.length > FEW) return found;
  return found.map(([first, last]) => [Math.floor(first / BLOCK) * BLOCK, Math.floor(last / BLOCK) * BLOCK + BLOCK - 1]);
}
