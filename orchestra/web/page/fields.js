/** What dialogs are made of, and whether there may be any: a page that only reads changes nothing. */

import { h, toast } from "./dom.js";

/** Whether anything can be changed from here. */
export function canAct(model) {
  return Boolean(model.server?.actions) && !model.server.read_only && !model.source.bundle;
}

/** Whether nothing can be changed from here; that is said. */
export function refused(model) {
  if (canAct(model)) {
    return false;
  }
  toast(model.source.bundle ? "This is a bundle: it can only be read." : "This page is read-only: nothing can be changed from here.");
  return true;
}

/** A line or some lines to write in, with a label. */
export function field(label, value, { multi = false, autofocus = false } = {}) {
  const input = h(multi ? "textarea" : "input", { class: "field", rows: multi ? 4 : null, autofocus, spellcheck: "false" });
  input.value = value;
  return { input, node: h("label", { class: "labelled" }, h("span", { class: "label", text: label }), input) };
}

/** Something that is so or not. */
export function check(label, on) {
  const input = h("input", { type: "checkbox", checked: on });
  return { input, node: h("label", { class: "check" }, input, h("span", { text: label })) };
}
