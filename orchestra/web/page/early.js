/* Asks for what the run page shows first while its modules are still on the way. A plain script, not a module. */
(() => {
  const found = /^\/runs\/([^/]+)$/.exec(location.pathname);
  if (found) {
    const run = `/api/runs/${found[1]}`;
    const ask = (address) => [address, fetch(address, { credentials: "same-origin" }).catch(() => null)];
    const at = new URLSearchParams(location.search).get("at") || "head";
    const changes = `${run}/snapshots/${encodeURIComponent(at)}/changes`;
    globalThis.orchestraEarly = new Map(["/api/info", run, `${run}/snapshots`, changes].map(ask));
  }
})();
