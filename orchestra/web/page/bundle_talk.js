/**
 * A conversation out of a state in a bundle, as the server tells it: orchestra/history/conversation.py does the same.
 *
 * A state leaves out what has its default. Pure functions: where a message was said is asked of whoever calls.
 */

import { form } from "./format.js";

const LONG = 16_384;
const MESSAGES = 60;
const SUPERSEDED = new Set(["interrupted", "error"]);

/** The messages of an agent or an assignment. @param {(names: string[]) => Map<string, object>} places */
export function conversationIn(state, who, { first = null, limit = MESSAGES }, places, brief) {
  const all = Object.entries(state.messages ?? {}).filter(([, held]) => held.agent === who || held.task === who);
  const start = first === null ? Math.max(0, all.length - limit) : Math.min(first, all.length);
  const newest = new Map(all.filter(([, held]) => held.role === "assistant").map(([name, held]) => [step(held), name]));
  const gone = compacted(all);
  const part = all.slice(start, start + limit);
  const found = places(part.map(([name]) => name));
  const messages = part.map(([name, held]) => message(state, name, held, { newest, gone }, found.get(name) ?? null, brief));
  return { who, count: all.length, first: start, messages };
}

function step({ agent, task, round = 1, step_number: number = 0, stands_for: gone = [] }) {
  return JSON.stringify([agent, task, round, number, list(gone).length > 0]);
}

/** The messages that a summary stands for, unless the conversation was taken up again before that. */
function compacted(all) {
  const summaries = new Map();
  for (const [, held] of all) {
    const { agent, task, round = 1, step_number: number = 0, status = "complete" } = held;
    const key = JSON.stringify([agent, task, round]);
    let made = summaries.get(key) ?? [];
    if (held.role === "assistant") made = made.filter((each) => each.number <= number);
    const names = list(held.stands_for ?? []);
    if (names.length && status === "complete" && list(held.parts).some(({ text = "" }) => text.trim())) made.push({ number, names });
    summaries.set(key, made);
  }
  return new Set([...summaries.values()].flatMap((made) => made.flatMap(({ names }) => names)));
}

function message(state, name, held, { newest, gone }, snapshot, brief) {
  const { role, agent = null, task = null, round = 1, status = "complete", model = null, generation = null } = held;
  return {
    message: name,
    agent,
    task,
    round,
    role,
    status,
    model,
    step: held.step_number ?? 0,
    superseded: SUPERSEDED.has(status) || (role === "assistant" && newest.get(step(held)) !== name),
    compacted: gone.has(name),
    stands_for: list(held.stands_for ?? []),
    snapshot,
    created_at: instant(held.created_at),
    updated_at: instant(held.updated_at),
    completed_at: instant(held.completed_at),
    generation: generation && used(generation, brief),
    parts: list(held.parts).map((part, at) => piece(state, held, name, part, at, status === "streaming", brief)),
  };
}

function used(held, brief) {
  const nothing = { tokens_in: 0, tokens_out: 0, cache_read: 0, cache_write: 0, cost_micros: null, latency_us: 0, finish: "" };
  return { ...nothing, ...held, asked: null, settings: brief(held.settings ?? null) };
}

function piece(state, message, name, { kind, text = "", data = null }, at, streams, brief) {
  const path = ["messages", name, "parts", at];
  if (kind === "tool_call" && data && !form(data)) {
    return { kind, text, path: [...path, "text"], data: null, call: call(state, message, name, data, brief) };
  }
  const { whole, ...rest } = data && typeof data === "object" && !form(data) ? data : {};
  const said = typeof whole === "string" ? whole : text;
  const cut = said.length > LONG && !streams ? { $cut: { text: said.slice(0, LONG), size: said.length } } : said;
  const other = whole === undefined ? data : Object.keys(rest).length ? rest : null;
  return { kind, text: cut, path: [...path, ...(whole === undefined ? ["text"] : ["data", "whole"])], data: brief(other), call: null };
}

function call(state, message, name, data, brief) {
  const id = String(data.id ?? "");
  const key = `${name.slice(0, name.lastIndexOf("#"))}#${id}`;
  const record = Object.hasOwn(state.tool_calls ?? {}, key) ? state.tool_calls[key] : null;
  return {
    id,
    name: record ? key : "",
    tool: record?.tool ?? String(data.name ?? ""),
    status: record ? (record.status ?? "started") : "asked",
    arguments: brief((record ? record.arguments : data.arguments) ?? null),
    result: brief(record?.result ?? null),
    error: record?.error ?? "",
    risky: record?.risky ?? false,
    attempts: record?.attempts ?? 0,
    started_at: instant(record?.started_at),
    ended_at: instant(record?.ended_at),
    questions: record ? questions(state, message.task, id, brief) : [],
  };
}

function questions(state, task, call, brief) {
  const about = ([, wait]) => wait.kind === "question" && wait.task === task && wait.details?.call === call;
  return Object.entries(state.waits ?? {})
    .filter(about)
    .map(([wait, held]) => ({
      wait,
      text: held.text ?? "",
      status: held.status ?? "open",
      opened_at: instant(held.opened_at),
      closed_at: instant(held.closed_at),
      answer: brief(held.answer ?? null),
    }));
}

function list(held) {
  return held?.$tuple ?? held ?? [];
}

function instant(held) {
  return held?.$at ?? held ?? null;
}
