/**
 * What of a run is shown: which rows pass, and how a filter stands in an address.
 */

import { FLAG } from "./columns.js";

/** @typedef {{agents: string[], triggers: string[], status: string[], phases: string[], errors: boolean, marked: boolean, text: string}} Filter */

const LISTS = { agents: "agent", triggers: "trigger", status: "status", phases: "phase" };

/** A filter that lets everything pass. @returns {Filter} */
export function noFilter() {
  return { agents: [], triggers: [], status: [], phases: [], errors: false, marked: false, text: "" };
}

/** Whether it lets everything pass. @param {Filter} filter */
export function isEmpty(filter) {
  return !filter.errors && !filter.marked && !filter.text && Object.keys(LISTS).every((name) => !filter[name].length);
}

/** @param {URLSearchParams} params @returns {Filter} */
export function fromParams(params) {
  const filter = noFilter();
  for (const [name, param] of Object.entries(LISTS)) {
    filter[name] = params.getAll(param);
  }
  filter.errors = params.has("errors");
  filter.marked = params.has("marked");
  filter.text = params.get("text") ?? "";
  return filter;
}

/** The pairs of an address. @param {Filter} filter @returns {[string, string][]} */
export function toPairs(filter) {
  const pairs = [];
  for (const [name, param] of Object.entries(LISTS)) {
    pairs.push(...filter[name].map((word) => [param, word]));
  }
  if (filter.errors) {
    pairs.push(["errors", "1"]);
  }
  if (filter.marked) {
    pairs.push(["marked", "1"]);
  }
  if (filter.text) {
    pairs.push(["text", filter.text]);
  }
  return pairs;
}

/**
 * A test for rows. Words are judged once each, rows only by number.
 * @param {Filter} filter @param {import("./columns.js").Columns} columns
 */
export function passes(filter, columns) {
  const text = filter.text.toLowerCase();
  const words = columns.words;
  const agents = anyOf(words.agents.list, filter.agents);
  const triggers = anyOf(words.triggers.list, filter.triggers);
  const status = anyOf(words.status.list, filter.status);
  const phases = anyOf(words.phase.list, filter.phases);
  const said = text ? [words.agents, words.triggers, words.status, words.phase].map((w) => has(w.list, text)) : null;
  const flags = (filter.errors ? FLAG.error : 0) | (filter.marked ? FLAG.marked : 0);
  return (i) =>
    (columns.flags[i] & flags) === flags &&
    (!agents || agents[columns.agents[i]]) &&
    (!triggers || triggers[columns.triggers[i]]) &&
    (!status || status[columns.status[i]]) &&
    (!phases || (columns.phase[i] >= 0 && phases[columns.phase[i]])) &&
    (!said ||
      said[0][columns.agents[i]] ||
      said[1][columns.triggers[i]] ||
      said[2][columns.status[i]] ||
      (columns.phase[i] >= 0 && said[3][columns.phase[i]]));
}

function anyOf(list, wanted) {
  if (!wanted.length) {
    return null;
  }
  return list.map((word) => (Array.isArray(word) ? word.some((w) => wanted.includes(w)) : wanted.includes(word)));
}

function has(list, text) {
  return list.map((word) => String(word).toLowerCase().includes(text));
}
