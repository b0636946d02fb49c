/**
 * A tree of values with as many elements as fit on the screen, however much there is to show.
 */

import { button, copy, framed, h, say } from "./dom.js";
import { brief, number, pathText, size } from "./format.js";
import { isLazy, kindOf, sizeOf } from "./forms.js";
import { icon } from "./icons.js";

const ROW = 24;
const MARGIN = 6;
const INDENT = 14;
const CHAR = 7.2;

class Tree extends HTMLElement {
  pool = [];
  lines = [];
  chosen = null;
  // Kept, because asking makes the browser lay the page out.
  scrolled = 0;
  high = 0;
  wide = 0;

  connectedCallback() {
    if (this.scroller) return;
    this.spacer = h("div", { class: "tree-spacer" });
    this.scroller = h(
      "div",
      {
        class: "tree-scroll",
        role: "tree",
        tabindex: "0",
        aria: { label: this.getAttribute("label") ?? "Values" },
        on: { scroll: () => this.scrolledTo(this.scroller.scrollTop), click: (event) => this.clicked(event), keydown: (event) => this.pressed(event) },
      },
      this.spacer,
    );
    this.append(this.scroller);
    this.soon = framed(() => this.paint());
    this.sized = new ResizeObserver(() => this.measured());
    this.sized.observe(this.scroller);
  }

  /** Show these branches; `mode` is "one" or "changes" or "sides". */
  show(branches, mode) {
    const another = this.branches !== branches;
    this.branches = branches;
    this.mode = mode;
    if (another) this.className = `tree-${mode}`;
    if (another && this.scrolled) {
      this.scroller.scrollTop = 0;
      this.scrolled = 0;
    }
    this.renew();
  }

  scrolledTo(top) {
    this.scrolled = top;
    this.paint();
  }

  measured() {
    this.high = this.scroller.clientHeight;
    this.wide = this.scroller.clientWidth;
    this.scrolled = this.scroller.scrollTop;
    const wide = this.columns();
    if (this.branches && this.branches.wide !== wide) {
      this.branches.wide = wide;
      this.renew();
    } else {
      this.soon();
    }
  }

  /** How many characters fit on a line of text. */
  columns() {
    const room = (this.wide || 800) * (this.mode === "sides" ? 0.35 : 1) - (this.mode === "sides" ? 24 : 70);
    return Math.max(24, Math.floor(room / CHAR));
  }

  /** The lines may be others. */
  renew() {
    if (!this.branches) return;
    this.branches.wide = this.columns();
    this.branches.indented = this.mode !== "sides";
    this.lines = this.branches.lines();
    this.spacer.style.height = `${this.lines.length * ROW}px`;
    this.paint();
  }

  /** Mark the line of a path. */
  choose(path) {
    this.chosen = path ? JSON.stringify(path) : null;
    this.paint();
  }

  // --- painting

  paint() {
    const { scroller, lines } = this;
    const height = this.high || 600;
    const most = Math.max(0, lines.length * ROW - height);
    const first = Math.max(0, Math.floor(Math.min(most, this.scrolled) / ROW) - MARGIN);
    const last = Math.min(lines.length, first + Math.ceil(height / ROW) + 2 * MARGIN);
    while (this.pool.length < last - first) this.grow();
    let active = null;
    for (let n = 0; n < this.pool.length; n += 1) {
      const row = this.pool[n];
      const at = first + n;
      if (at >= last) {
        row.hide();
      } else {
        row.fill(lines[at], at, this.mode, this.chosen);
        if (lines[at].id === this.chosen) active = row.node.id;
      }
    }
    if (active) scroller.setAttribute("aria-activedescendant", active);
    else scroller.removeAttribute("aria-activedescendant");
  }

  grow() {
    const row = new TreeRow(`${this.id || "tree"}-row-${this.pool.length}`);
    this.pool.push(row);
    this.scroller.append(row.node);
  }

  // --- doing

  lineOf(event) {
    const node = event.target.closest(".tree-row");
    return node ? this.lines[Number(node.dataset.at)] : null;
  }

  clicked(event) {
    const line = this.lineOf(event);
    if (!line) return;
    const action = event.target.closest("[data-act]")?.dataset.act;
    if (action === "copy") {
      copy(pathText(line.path), "Path");
    } else if (action === "blame") {
      this.tell("blame", line.path);
    } else if (line.kind === "more") {
      this.after(this.branches.more(line, line.path));
    } else if (action === "toggle" || (event.detail === 2 && line.openable)) {
      this.toggle(line);
    } else if (line.kind !== "loading" && line.kind !== "failed") {
      this.tell("choose", line.path);
    }
  }

  toggle(line) {
    this.after(this.branches.toggle(line));
  }

  async after(work) {
    this.renew();
    if (work) {
      await work;
      this.renew();
    }
  }

  tell(type, path) {
    this.dispatchEvent(new CustomEvent(type, { detail: { path }, bubbles: true }));
  }

  pressed(event) {
    const at = this.lines.findIndex((line) => line.id === this.chosen);
    const line = this.lines[at];
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      this.move(at, event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter" && line?.openable) {
      this.toggle(line);
    } else {
      return;
    }
    event.preventDefault();
  }

  move(at, by) {
    let next = at < 0 ? (by > 0 ? 0 : this.lines.length - 1) : at + by;
    while (this.lines[next]?.of) next += by;
    const line = this.lines[next];
    if (!line) return;
    this.tell("choose", line.path);
    this.see(next);
  }

  see(at) {
    const { scroller } = this;
    const y = at * ROW;
    if (y < scroller.scrollTop) scroller.scrollTop = y;
    else if (y + ROW > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = y + ROW - scroller.clientHeight;
  }

  /** Bring a path into sight if its line is there. */
  seePath(path) {
    const id = JSON.stringify(path);
    const at = this.lines.findIndex((line) => line.id === id);
    if (at >= 0) this.see(at);
  }
}

class TreeRow {
  constructor(id) {
    this.sign = h("span", { class: "tree-sign" });
    this.twist = button("Open or close", () => {}, { sign: "▸", class: "quiet tree-twist", data: { act: "toggle" }, tabindex: "-1" });
    this.label = h("span", { class: "tree-label" });
    this.before = h("span", { class: "tree-before" });
    this.arrow = h("span", { class: "tree-arrow", aria: { hidden: "true" } });
    this.after = h("span", { class: "tree-after" });
    this.acts = h(
      "span",
      { class: "tree-acts" },
      button("Copy path", () => {}, { sign: icon("copy"), class: "quiet", data: { act: "copy" }, tabindex: "-1" }),
      button("Who set this?", () => {}, { class: "quiet", data: { act: "blame" }, tabindex: "-1" }),
    );
    this.key = h("span", { class: "tree-key" }, this.twist, this.label);
    this.node = h("div", { class: "tree-row", role: "treeitem", id }, this.sign, this.key, this.before, this.arrow, this.after, this.acts);
  }

  hide() {
    this.node.hidden = true;
  }

  fill(line, at, mode, chosen) {
    const { node } = this;
    node.hidden = false;
    node.dataset.at = String(at);
    node.style.transform = `translateY(${at * ROW}px)`;
    this.key.style.paddingLeft = `${line.depth * INDENT}px`;
    node.setAttribute("aria-level", String(line.depth + 1));
    node.setAttribute("aria-selected", String(line.id === chosen));
    if (line.openable) node.setAttribute("aria-expanded", String(line.open));
    else node.removeAttribute("aria-expanded");
    this.twist.hidden = !line.openable;
    say(this.twist, !line.openable ? "" : line.open ? "▾" : "▸");
    say(this.sign, line.sign);
    this.values(line, mode);
    node.className = `tree-row kind-${line.kind} ${TONES[line.sign] ?? ""}${line.id === chosen ? " selected" : ""}${line.open ? " open" : ""}`;
    node.title = line.of ? "" : pathText(line.path);
  }

  values(line, mode) {
    const aside = line.of !== undefined;
    this.acts.hidden = aside;
    if (aside) {
      say(this.label, "");
      const apart = mode === "sides" && line.kind === "line";
      say(this.before, apart && line.sign !== "+" ? line.b : "");
      say(this.arrow, "");
      say(this.after, apart && line.sign === "−" ? "" : line.b);
      delete this.before.dataset.kind;
      delete this.after.dataset.kind;
      return;
    }
    labelled(this.label, line, mode);
    const [a, b] = shortened(line, mode);
    say(this.before, a);
    say(this.after, b);
    say(this.arrow, mode === "changes" && a && b ? "→" : "");
    this.before.dataset.kind = kindOf(line.a);
    this.after.dataset.kind = kindOf(line.b);
  }
}

const TONES = { "+": "added", "−": "removed", "~": "changed" };

/** In the list of changes a path's last step stands out from the way to it. */
function labelled(node, line, mode) {
  if (mode !== "changes" || line.depth > 0 || line.path.length < 2) {
    say(node, line.label);
    return;
  }
  const last = pathText(line.path.slice(-1));
  const whole = pathText(line.path);
  const joint = last.startsWith("[") ? "" : ".";
  const way = whole.slice(0, whole.length - last.length - joint.length) + joint;
  if (node.textContent !== way + last || !node.firstElementChild) {
    node.replaceChildren(h("span", { class: "tree-way", text: way }), h("b", { text: last }));
  }
}

function shortened(line, mode) {
  const { a, b } = line;
  if (mode === "one") return ["", told(b, line)];
  if (mode === "changes" && typeof a === "string" && typeof b === "string" && b.length > a.length && a && b.startsWith(a)) {
    return [`… ${number(a.length)} characters`, `+ ${brief(b.slice(a.length), 300)}`];
  }
  return [a === undefined ? "" : told(a, line), b === undefined ? "" : told(b, line)];
}

function told(value, { open, total }) {
  const kind = kindOf(value);
  if (kind === "object" && (open || isLazy(value))) return `{${number(total ?? sizeOf(value))}}`;
  if (kind === "array" && (open || isLazy(value))) return `[${number(total ?? sizeOf(value))}]`;
  if (kind === "text" && open) return isLazy(value) ? size(value.$cut.size) : `${number(value.length)} characters`;
  return brief(value, 400);
}

customElements.define("orchestra-tree", Tree);
