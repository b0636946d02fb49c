/**
 * What was asked for is kept for a while: answers by name, the least recently used go first.
 */

export class Lru {
  /** @param {number} most how many entries are kept */
  constructor(most) {
    this.most = most;
    this.entries = new Map();
  }

  get size() {
    return this.entries.size;
  }

  get(key) {
    const found = this.entries.get(key);
    if (found !== undefined) {
      this.entries.delete(key);
      this.entries.set(key, found);
    }
    return found;
  }

  has(key) {
    return this.entries.has(key);
  }

  set(key, value) {
    this.entries.delete(key);
    this.entries.set(key, value);
    while (this.entries.size > this.most) {
      this.entries.delete(this.entries.keys().next().value);
    }
  }

  delete(key) {
    this.entries.delete(key);
  }

  clear() {
    this.entries.clear();
  }
}

/** Answers of a server: asked for once, shared while on the way, at hand at once when they have come. */
export class Answers {
  constructor(most) {
    this.kept = new Lru(most);
  }

  /** The answer if it has come. */
  peek(key) {
    return this.kept.get(key)?.value;
  }

  /** The answer, asked for if need be. A failure is not kept. */
  get(key, ask) {
    const found = this.kept.get(key);
    if (found) {
      return found.promise;
    }
    const entry = { value: undefined, promise: null };
    entry.promise = ask().then(
      (value) => {
        entry.value = value;
        return value;
      },
      (failure) => {
        if (this.kept.get(key) === entry) {
          this.kept.delete(key);
        }
        throw failure;
      },
    );
    entry.promise.catch(() => {});
    this.kept.set(key, entry);
    return entry.promise;
  }

  has(key) {
    return this.kept.has(key);
  }

  forget(key) {
    this.kept.delete(key);
  }

  clear() {
    this.kept.clear();
  }
}

/** Loads what was wanted last: one question at a time, those overtaken on the way are never asked. */
export class Latest {
  constructor() {
    this.busy = null;
    this.next = null;
  }

  /** Answers when nothing is wanted any more. @param {() => Promise<void>} work */
  want(work) {
    this.next = work;
    this.busy ??= this.turn();
    return this.busy;
  }

  async turn() {
    while (this.next) {
      const work = this.next;
      this.next = null;
      await work().catch(() => {});
    }
    this.busy = null;
  }
}

export function pause(milliseconds) {
  return new Promise((done) => setTimeout(done, milliseconds));
}
