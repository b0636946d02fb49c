/** Paths and references as they stand in an address: read with care, for anybody may have written them. */

/** A path, or null where there is none. */
export function pathOf(text) {
  try {
    const path = JSON.parse(text ?? "null");
    const steps = Array.isArray(path) && path.every((step) => typeof step === "string" || Number.isInteger(step));
    return steps ? path : null;
  } catch {
    return null;
  }
}

/** {run, seq} of "RUN@SEQ" or "SEQ". */
export function referenceOf(text, run) {
  const found = /^(?:(.+)@)?#?(\d+)$/.exec((text ?? "").trim());
  return found ? { run: found[1] ?? run, seq: Number(found[2]) } : null;
}
