/**
 * Elements are made here, and only here. Text that came from a run becomes a text node, never HTML.
 */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element: `class`, `text`, `on`, `data` and `aria` are special, `disabled: false` leaves the attribute out.
 * @param {string} tag
 * @param {Object<string, any>} [props]
 * @param {...(Node|string|number|null|undefined|false|Array)} children
 * @returns {HTMLElement}
 */
export function h(tag, props, ...children) {
  return filled(document.createElement(tag), props, children);
}

/** The same for a drawing. */
export function svg(tag, props, ...children) {
  return filled(document.createElementNS(SVG, tag), props, children);
}

function filled(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    give(node, name, value);
  }
  append(node, children);
  return node;
}

function give(node, name, value) {
  if (value === null || value === undefined || value === false) {
    return;
  }
  if (name === "class") {
    node.setAttribute("class", value);
  } else if (name === "text") {
    node.textContent = String(value);
  } else if (name === "on") {
    for (const [kind, handler] of Object.entries(value)) {
      node.addEventListener(kind, handler);
    }
  } else if (name === "data") {
    Object.assign(node.dataset, value);
  } else if (name === "aria") {
    for (const [key, each] of Object.entries(value)) {
      node.setAttribute(`aria-${key}`, String(each));
    }
  } else {
    node.setAttribute(name, value === true ? "" : String(value));
  }
}

function append(node, children) {
  for (const child of children) {
    if (Array.isArray(child)) {
      append(node, child);
    } else if (child instanceof Node) {
      node.appendChild(child);
    } else if (child !== null && child !== undefined && child !== false) {
      node.appendChild(document.createTextNode(String(child)));
    }
  }
}

/** Put these children in the place of all that were there. */
export function replace(node, ...children) {
  node.replaceChildren();
  append(node, children);
  return node;
}

/** Set the text of a node if it is another; touching the page costs more than asking. */
export function say(node, text) {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}

/** A button with a name that is said aloud, and optionally a key that does the same. */
export function button(label, run, props = {}) {
  const { key, sign, ...rest } = props;
  const title = key ? `${rest.title ?? label} (${key})` : rest.title ?? (sign ? label : undefined);
  const shown = sign ? { aria: { label, ...rest.aria } } : {};
  return h("button", { type: "button", ...rest, ...shown, title, on: { click: run } }, sign ?? label);
}

/** Run something at most once per frame. */
export function framed(work) {
  let waiting = 0;
  return () => {
    if (!waiting) {
      waiting = requestAnimationFrame(() => {
        waiting = 0;
        work();
      });
    }
  };
}

/** Said to people who listen to the page instead of looking at it. */
export function announce(text) {
  const place = document.getElementById("announcer");
  if (place) {
    say(place, text);
  }
}

let toastTimer = 0;

/** A short message at the bottom that goes away by itself. */
export function toast(text) {
  let place = document.getElementById("toast");
  if (!place) {
    place = h("div", { id: "toast", class: "toast", role: "status" });
    document.body.append(place);
  }
  say(place, text);
  place.classList.add("shown");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => place.classList.remove("shown"), 2600);
}

/** Put text on the clipboard, also where the clipboard API is not there. */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", { class: "offscreen", aria: { hidden: "true" } });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast(`${what} copied`);
}

/** What is shown in the place of something that could not be had. */
export function trouble(failure, again) {
  return h(
    "div",
    { class: "trouble", role: "alert" },
    h("strong", { text: headingOf(failure) }),
    h("p", { text: failure?.message ?? String(failure) }),
    again && h("p", {}, button("Try again", again)),
  );
}

const HEADINGS = new Map([
  [0, "The server does not answer"],
  [401, "This page needs its token"],
  [403, "Not allowed"],
  [404, "Not found"],
  [410, "Pruned"],
  [413, "Too large"],
  [422, "Damaged"],
  [503, "The store is not available"],
]);

function headingOf(failure) {
  return HEADINGS.get(failure?.status) ?? "That did not work";
}
