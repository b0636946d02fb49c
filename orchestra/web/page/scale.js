/**
 * Where a snapshot stands on the strip: by time, with idle stretches folded together, or simply by number.
 */

const SAMPLE = 4000;
const IDLE_TIMES = 25;
const IDLE_SHARE = 0.12;
const IDLE_LONG = 15 * 60 * 1e6;
const IDLE_LEAST = 2e6;
const FOLDED_SHARE = 0.035;
const MOST_FOLDS = 12;

export class Scale {
  constructor(columns) {
    this.columns = columns;
    this.mode = "time";
    this.pos = new Float64Array(0);
    this.count = 0;
    this.folds = [];
    this.total = 1;
  }

  /** Work the positions out again. */
  renew() {
    const { count } = this.columns;
    if (this.pos.length < count) this.pos = new Float64Array(Math.max(1024, count * 2));
    this.count = count;
    this.folds = [];
    if (this.mode === "steps" || this.span() === 0) {
      for (let i = 0; i < count; i += 1) this.pos[i] = i;
      this.total = Math.max(1, count - 1);
    } else {
      this.byTime(this.idle());
    }
  }

  /** Rows were added at the end: place them after the others. Long pauses among them are folded at the next renewal. */
  extend() {
    const { count, at } = this.columns;
    if (this.count < 2 || count > this.pos.length) {
      this.renew();
      return;
    }
    for (let i = this.count; i < count; i += 1) {
      const step = this.mode === "steps" ? 1 : Math.min(this.least ?? Infinity, Math.max(0, at[i] - at[i - 1]));
      this.pos[i] = this.pos[i - 1] + step;
    }
    this.count = count;
    this.total = Math.max(1, this.pos[count - 1]);
  }

  span() {
    return this.count > 1 ? Math.max(0, this.columns.at[this.count - 1] - this.columns.at[0]) : 0;
  }

  /** Rows after which nothing happened for long, with how long. */
  idle() {
    const { at } = this.columns;
    const gaps = [];
    const stride = Math.max(1, Math.floor(this.count / SAMPLE));
    for (let i = stride; i < this.count; i += stride) gaps.push((at[i] - at[i - stride]) / stride);
    gaps.sort((a, b) => a - b);
    const usual = Math.max(1000, gaps[gaps.length >> 1] ?? 0);
    const least = Math.max(IDLE_LEAST, usual * IDLE_TIMES, Math.min(this.span() * IDLE_SHARE, IDLE_LONG));
    this.least = least;
    const found = [];
    for (let i = 1; i < this.count; i += 1) {
      if (at[i] - at[i - 1] > least) found.push({ after: i - 1, micros: at[i] - at[i - 1] });
    }
    found.sort((a, b) => b.micros - a.micros);
    return found.slice(0, MOST_FOLDS);
  }

  byTime(folds) {
    const { at } = this.columns;
    const folded = new Map(folds.map((fold) => [fold.after, fold]));
    const idle = folds.reduce((sum, fold) => sum + fold.micros, 0);
    const active = Math.max(1, this.span() - idle);
    const width = active * FOLDED_SHARE;
    let place = 0;
    this.pos[0] = 0;
    for (let i = 1; i < this.count; i += 1) {
      const fold = folded.get(i - 1);
      place += fold ? width : Math.max(0, at[i] - at[i - 1]);
      this.pos[i] = place;
    }
    this.folds = folds.map((fold) => ({ ...fold, from: this.pos[fold.after], to: this.pos[fold.after + 1] }));
    this.total = Math.max(1, place);
  }

  /** The row nearest to a position. */
  nearest(position) {
    const i = this.before(position);
    if (i < 0) return 0;
    return i + 1 < this.count && this.pos[i + 1] - position < position - this.pos[i] ? i + 1 : i;
  }

  /** The last row that is not behind a position, or -1. */
  before(position) {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.pos[middle] <= position) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}
