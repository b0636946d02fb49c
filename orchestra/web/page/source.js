/**
 * Where the page reads from: the server that sent it. bundle.js has the same methods over data inside the file.
 */

/** An answer that was a refusal: its status (0: none came) and the server's sentence. */
export class Failure extends Error {
  constructor(status, error, message) {
    super(message);
    this.name = "Failure";
    this.status = status;
    this.error = error;
  }
}

const UNREACHABLE = "The server does not answer: is `orchestra browse` still running? The page tries again by itself.";
const RETRY_MS = [500, 1000, 2000, 5000];

export class HttpSource {
  constructor(base = "/api") {
    this.base = base;
    this.readOnly = false;
    this.bundle = false;
  }

  info(options) {
    return this.get("/info", {}, options);
  }

  runs(query = {}, options) {
    return this.get("/runs", query, options);
  }

  run(run, options) {
    return this.get(this.of(run), {}, options);
  }

  snapshots(run, query = {}, options) {
    return this.get(this.of(run, "snapshots"), query, options);
  }

  headlines(run, first, last, options) {
    return this.get(this.of(run, "headlines"), { first, last }, options);
  }

  outline(run, after = -1, options) {
    return this.get(this.of(run, "outline"), { after }, options);
  }

  snapshot(run, at, options) {
    return this.get(this.of(run, "snapshots", at), {}, options);
  }

  /** @param {{budget?: number, offset?: number, limit?: number, signal?: AbortSignal}} [options] */
  state(run, at, path = [], options = {}) {
    const { budget, offset, limit } = options;
    const query = { path: JSON.stringify(path), budget, offset, limit };
    return this.get(this.of(run, "snapshots", at, "state"), query, options);
  }

  rawLink(run, at, path) {
    return this.address(this.of(run, "snapshots", at, "state"), { path: JSON.stringify(path), raw: 1 });
  }

  changes(run, at, options) {
    return this.get(this.of(run, "snapshots", at, "changes"), {}, options);
  }

  /** `from` and `to` are references: {run, seq} or "RUN@AT". */
  diff(from, to, path = [], options) {
    const query = { from: reference(from), to: reference(to), path: JSON.stringify(path) };
    return this.get("/diff", query, options);
  }

  /** @param {{first?: number, limit?: number}} [from] the newest messages, or those from a number on */
  conversation(run, at, who, from = {}, options) {
    return this.get(this.of(run, "snapshots", at, "conversation"), { who, ...from }, options);
  }

  blame(run, at, path, options) {
    return this.get(this.of(run, "blame"), { at, path: JSON.stringify(path) }, options);
  }

  touches(run, path, options) {
    return this.get(this.of(run, "touches"), { path: JSON.stringify(path) }, options);
  }

  first(run, expr, options) {
    return this.get(this.of(run, "first"), { expr }, options);
  }

  matches(run, expr, limit, options) {
    return this.get(this.of(run, "matches"), { expr, limit }, options);
  }

  /** Calls back for every hit as it comes; the answer is the last line, {done, scanned, truncated}. */
  async search(run, q, onHit, options = {}) {
    const answer = await this.ask(this.address(this.of(run, "search"), { q, limit: options.limit }), options);
    let last = { done: false, scanned: 0, truncated: false };
    for await (const line of lines(answer.body)) {
      const found = JSON.parse(line);
      if (found.done !== undefined) {
        last = found;
      } else {
        onHit(found);
      }
    }
    return last;
  }

  decisions(run, options) {
    return this.get(this.of(run, "decisions"), {}, options);
  }

  questions(run, options) {
    return this.get(run ? this.of(run, "questions") : "/questions", {}, options);
  }

  outputs(run, options) {
    return this.get(this.of(run, "outputs"), {}, options);
  }

  workflow(run, options) {
    return this.get(this.of(run, "workflow"), {}, options);
  }

  family(family, options) {
    return this.get(`/families/${encodeURIComponent(family)}`, {}, options);
  }

  verify(run, options) {
    return this.get(this.of(run, "verify"), {}, options);
  }

  plan(run, action, at, values, options) {
    const query = { action, at, values: values === undefined ? undefined : JSON.stringify(values) };
    return this.get(this.of(run, "plan"), query, options);
  }

  /** Change something: `verb` is fork, rollback, answer… as in the API. */
  act(run, verb, body = {}, options) {
    return this.post(this.of(run, verb), body, options);
  }

  outputLink(run, path) {
    const steps = path.split("/").map(encodeURIComponent).join("/");
    return `${this.base}${this.of(run, "outputs")}/${steps}`;
  }

  exportLink(run) {
    return this.base + this.of(run, "export");
  }

  bundleLink(run) {
    return this.base + this.of(run, "bundle.html");
  }

  /**
   * Listen to what happens: `onEvent({type, ...})` with type snapshot, run, gone, open or lost.
   * A connection that was cut is made again and goes on after the last number that came.
   * @returns {() => void} stops it
   */
  events({ run, after }, onEvent) {
    let stream = null;
    let last = after;
    let timer = 0;
    let failures = 0;
    const connect = () => {
      stream = new EventSource(this.address("/events", { run, after: last }));
      stream.onopen = () => {
        failures = 0;
        onEvent({ type: "open" });
      };
      stream.onerror = () => {
        onEvent({ type: "lost" });
        stream.close();
        timer = setTimeout(connect, RETRY_MS[Math.min(failures, RETRY_MS.length - 1)]);
        failures += 1;
      };
      for (const type of ["snapshot", "run", "gone"]) {
        stream.addEventListener(type, (event) => {
          last = event.lastEventId === "" ? last : Number(event.lastEventId);
          onEvent({ ...JSON.parse(event.data), type });
        });
      }
    };
    connect();
    return () => {
      clearTimeout(timer);
      stream.close();
    };
  }

  // --- how it is asked

  of(run, ...rest) {
    return ["/runs", run, ...rest].map((step, n) => (n ? encodeURIComponent(step) : step)).join("/");
  }

  address(path, query) {
    const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
    const text = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
    return this.base + path + (text ? `?${text}` : "");
  }

  async get(path, query, options = {}) {
    const address = this.address(path, query);
    const early = globalThis.orchestraEarly?.get(address);
    if (early) {
      globalThis.orchestraEarly.delete(address);
      const answer = await early;
      if (answer) {
        return readable(await whole(answer));
      }
    }
    return readable(await this.ask(address, options));
  }

  async post(path, body, options = {}) {
    const how = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    return readable(await this.ask(this.base + path, { ...options, ...how }));
  }

  async ask(address, { signal, method, headers, body, priority } = {}) {
    let answer;
    try {
      answer = await fetch(address, { signal, method, headers, body, priority, credentials: "same-origin" });
    } catch (error) {
      if (error.name === "AbortError") {
        throw error;
      }
      throw new Failure(0, "Unreachable", UNREACHABLE);
    }
    return whole(answer);
  }
}

/** "RUN@SEQ" of a reference in either form. */
export function reference(ref) {
  return typeof ref === "string" ? ref : `${ref.run}@${ref.seq}`;
}

/** An answer that is no refusal. */
async function whole(answer) {
  if (!answer.ok) {
    throw await refusal(answer);
  }
  return answer;
}

async function readable(answer) {
  try {
    return await answer.json();
  } catch (error) {
    if (error.name === "AbortError") {
      throw error;
    }
    throw new Failure(0, "Unreadable", "The server's answer cannot be read: load the page again.");
  }
}

async function refusal(answer) {
  let said = {};
  try {
    said = await answer.json();
  } catch {
    said = {};
  }
  const message = typeof said.message === "string" ? said.message : `The server answered ${answer.status}.`;
  return new Failure(answer.status, said.error ?? "Refused", message);
}

async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      break;
    }
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    yield* parts.filter(Boolean);
  }
  if (rest) {
    yield rest;
  }
}
