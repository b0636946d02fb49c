/**
 * The snapshots of a run as columns: typed arrays that grow, with words coded by number. A hundred thousand
 * snapshots are a few megabytes and no objects.
 */

export const FLAG = { marked: 1, pruned: 2, sealed: 4, error: 8, rolledBack: 16, forked: 32, pinned: 64, note: 128, damaged: 256 };

const KINDS = {
  seq: Float64Array,
  at: Float64Array,
  status: Uint16Array,
  phase: Int16Array,
  triggers: Uint16Array,
  agents: Uint16Array,
  flags: Uint16Array,
  size: Float64Array,
};
const NAMES = Object.keys(KINDS);
const LEAST = 1024;

/** Numbers for words, given out in the order the words come. */
class Words {
  constructor() {
    this.list = [];
    this.numbers = new Map();
  }

  number(word) {
    const key = typeof word === "string" ? word : JSON.stringify(word);
    let number = this.numbers.get(key);
    if (number === undefined) {
      number = this.list.length;
      this.numbers.set(key, number);
      this.list.push(word);
    }
    return number;
  }
}

export class Columns {
  constructor() {
    this.count = 0;
    this.room = 0;
    this.words = { status: new Words(), phase: new Words(), triggers: new Words(), agents: new Words() };
    this.grow(LEAST);
  }

  grow(least) {
    if (least <= this.room) {
      return;
    }
    this.room = Math.max(least, this.room * 2);
    for (const name of NAMES) {
      const wider = new KINDS[name](this.room);
      if (this.count) {
        wider.set(this[name].subarray(0, this.count));
      }
      this[name] = wider;
    }
  }

  /** Add the rows of an answer of `/snapshots` behind those that are there; rows that are known are renewed. */
  take(answer) {
    const { columns, count } = answer;
    const codes = this.codes(answer.words);
    const first = columns.first ?? answer.first ?? 0;
    this.grow(this.count + count);
    for (let n = 0; n < count; n += 1) {
      const seq = columns.seq ? columns.seq[n] : first + n;
      let i = this.count;
      if (this.count && seq <= this.seq[this.count - 1]) {
        i = this.indexOf(seq);
        if (i < 0) {
          continue;
        }
      } else {
        this.count += 1;
      }
      this.seq[i] = seq;
      this.at[i] = columns.at[n];
      this.status[i] = codes.status[columns.status[n]];
      this.phase[i] = columns.phase[n] < 0 ? -1 : codes.phase[columns.phase[n]];
      this.triggers[i] = codes.triggers[columns.triggers[n]];
      this.agents[i] = codes.agents[columns.agents[n]];
      this.flags[i] = columns.flags[n];
      this.size[i] = columns.size[n];
    }
  }

  codes(words) {
    const coded = {};
    for (const name of Object.keys(this.words)) {
      coded[name] = words[name].map((word) => this.words[name].number(word));
    }
    return coded;
  }

  /** Add one row of the live feed. */
  push({ seq, at, status, phase, triggers, agents, flags, size }) {
    this.grow(this.count + 1);
    const i = this.count;
    this.seq[i] = seq;
    this.at[i] = at;
    this.status[i] = this.words.status.number(status);
    this.phase[i] = phase ? this.words.phase.number(phase) : -1;
    this.triggers[i] = this.words.triggers.number(triggers);
    this.agents[i] = this.words.agents.number(agents);
    this.flags[i] = flags;
    this.size[i] = size;
    this.count += 1;
    return i;
  }

  /** The row of a snapshot's number, or -1. */
  indexOf(seq) {
    const i = this.atOrBefore(seq);
    return i >= 0 && this.seq[i] === seq ? i : -1;
  }

  /** The last row whose number is not above this one, or -1. */
  atOrBefore(seq) {
    let low = 0;
    let high = this.count;
    if (high && this.seq[high - 1] - this.seq[0] === high - 1) {
      return Math.min(high - 1, Math.max(-1, Math.floor(seq - this.seq[0])));
    }
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.seq[middle] <= seq) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low - 1;
  }

  seqAt(i) {
    return this.seq[i];
  }

  atOf(i) {
    return this.at[i];
  }

  statusOf(i) {
    return this.words.status.list[this.status[i]];
  }

  phaseOf(i) {
    return this.phase[i] < 0 ? null : this.words.phase.list[this.phase[i]];
  }

  triggersOf(i) {
    return this.words.triggers.list[this.triggers[i]];
  }

  agentsOf(i) {
    return this.words.agents.list[this.agents[i]];
  }
}

/** The first position in a sorted list whose value is not below this one. */
export function lowerBound(list, value, length = list.length) {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
