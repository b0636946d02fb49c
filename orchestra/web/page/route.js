/**
 * Where the page is: every view has an address that opens it again in the same place.
 *
 *     /                                 the runs
 *     /runs/RUN?at=812&tab=changes      one run
 *     /runs/RUN/workflow                the definition it was played from
 *
 * A bundle that was opened from a file has no server to answer such addresses; there they stand behind "#".
 */

/** @typedef {{page: "runs"|"run"|"workflow"|"unknown", run: string|null, params: URLSearchParams}} Route */

const hashed = () => location.protocol === "file:";

/** The place in the address bar. @returns {Route} */
export function current() {
  return hashed() ? parse(location.hash.slice(1) || "/") : parse(location.pathname + location.search);
}

/** Read an address. @param {string} address @returns {Route} */
export function parse(address) {
  const [path, query = ""] = address.split("?", 2);
  const params = new URLSearchParams(query);
  const steps = path.split("/").filter(Boolean).map(decoded);
  if (steps.length === 0) {
    return { page: "runs", run: null, params };
  }
  if (steps[0] === "runs" && steps.length === 2) {
    return { page: "run", run: steps[1], params };
  }
  if (steps[0] === "runs" && steps.length === 3 && steps[2] === "workflow") {
    return { page: "workflow", run: steps[1], params };
  }
  return { page: "unknown", run: null, params };
}

function decoded(step) {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

/** The address of a place, for links. @returns {string} */
export function link(page, run, params) {
  const query = new URLSearchParams(params ?? {}).toString();
  const path = page === "runs" ? "/" : `/runs/${encodeURIComponent(run)}${page === "workflow" ? "/workflow" : ""}`;
  const address = query ? `${path}?${query}` : path;
  return hashed() ? `#${address}` : address;
}

/** The full address of a place, for other people. */
export function permalink(page, run, params) {
  return new URL(link(page, run, params), location.href).href;
}

/** Go somewhere; listeners of `onRoute` hear it. */
export function go(page, run, params) {
  history.pushState(null, "", link(page, run, params));
  dispatchEvent(new Event("orchestra-route"));
}

/** Say where we are without going anywhere: no step in the history, nobody is told. */
export function settle(page, run, params) {
  history.replaceState(null, "", link(page, run, params));
}

/** Call back whenever the place changes. */
export function onRoute(call) {
  addEventListener("popstate", call);
  addEventListener("orchestra-route", call);
}

/** Links inside the page change the place without loading it again. */
export function followLinks() {
  document.addEventListener("click", (event) => {
    const anchor = event.target instanceof Element ? event.target.closest("a[data-route]") : null;
    if (!anchor || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) {
      return;
    }
    event.preventDefault();
    history.pushState(null, "", anchor.getAttribute("href"));
    dispatchEvent(new Event("orchestra-route"));
  });
}
