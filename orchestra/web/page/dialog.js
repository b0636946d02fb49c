/** The frame of every dialog: a title, a body, what went wrong, and two buttons. One is open at a time. */

import { h, replace } from "./dom.js";

let open = null;

/**
 * Opens a dialog and answers with what `submit` gave back, or null when it was closed.
 * @param {{title: string, confirm?: string, danger?: boolean, wide?: boolean, body: Node[], ready?: boolean,
 *          submit?: () => Promise<any>}} given
 */
export class Dialog {
  constructor({ title, confirm = "", danger = false, wide = false, body = [], ready = true, submit = async () => null, cancel = "Cancel" }) {
    open?.close();
    open = this;
    this.submit = submit;
    this.trouble = h("p", { class: "dialog-trouble", role: "alert", hidden: true });
    this.confirm = confirm ? h("button", { type: "submit", class: danger ? "button danger" : "button primary", text: confirm, disabled: !ready }) : null;
    const close = h("button", { type: "button", class: "button", text: cancel, autofocus: !confirm, on: { click: () => this.close() } });
    this.body = h("div", { class: "dialog-body" }, ...body);
    const heading = `dialog-${Math.random().toString(36).slice(2, 8)}`;
    this.node = h(
      "dialog",
      { class: wide ? "dialog wide" : "dialog", "aria-labelledby": heading, on: { close: () => this.#closed(), keydown: (event) => event.stopPropagation() } },
      h(
        "form",
        { method: "dialog", on: { submit: (event) => this.#submitted(event) } },
        h("header", {}, h("h2", { id: heading, text: title })),
        this.body,
        this.trouble,
        h("footer", {}, close, this.confirm),
      ),
    );
    this.answered = new Promise((resolve) => {
      this.resolve = resolve;
    });
  }

  /** Shows it; the first field, or what is marked with autofocus, has the focus. */
  show() {
    document.body.append(this.node);
    this.node.showModal();
    return this.answered;
  }

  close(answer = null) {
    this.answer = answer;
    if (this.node.open) this.node.close();
  }

  /** Lets the confirming button be pressed, or not. */
  ready(on) {
    if (this.confirm) this.confirm.disabled = !on;
  }

  fail(message) {
    this.trouble.hidden = !message;
    replace(this.trouble, message || "");
  }

  async #submitted(event) {
    event.preventDefault();
    if (!this.confirm || this.confirm.disabled) return;
    this.ready(false);
    this.fail("");
    try {
      this.close((await this.submit()) ?? true);
    } catch (failure) {
      this.fail(failure.message);
      this.ready(true);
    }
  }

  #closed() {
    if (open === this) open = null;
    this.node.remove();
    this.resolve(this.answer ?? null);
  }
}
