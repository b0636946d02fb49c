/**
 * What the strip draws, put together from the pages it comes in: confidence, bars, phases, jumps, errors, spending.
 */

/** An outline of nothing. */
export function emptyOutline() {
  return {
    upto: -1,
    confidence: { seq: [], value: [] },
    bars: [],
    phases: [],
    jumps: [],
    errors: [],
    decisions: [],
    waits: [],
    spent: { seq: [], tokens: [] },
    thresholds: [],
  };
}

/** An outline with its next page. What was open at the end of a page may be closed by the next one. */
export function joined(outline, part) {
  return {
    upto: Math.max(outline.upto, part.upto),
    confidence: columns(outline.confidence, part.confidence, "value"),
    bars: spans(outline.bars, part.bars, (bar) => `${bar.agent} ${bar.task} ${bar.attempt} ${bar.from}`),
    phases: spans(outline.phases, part.phases, (phase) => `${phase.phase} ${phase.visit} ${phase.from}`),
    jumps: merged(outline.jumps, part.jumps, (jump) => jump.seq),
    errors: merged(outline.errors, part.errors),
    decisions: merged(outline.decisions, part.decisions),
    waits: merged(outline.waits, part.waits),
    spent: columns(outline.spent, part.spent, "tokens"),
    thresholds: part.thresholds ?? outline.thresholds,
  };
}

function columns(old, more, name) {
  if (!more || !more.seq.length) {
    return old;
  }
  const last = old.seq.length ? old.seq[old.seq.length - 1] : -1;
  const skip = more.seq.findIndex((seq) => seq > last);
  if (skip < 0) {
    return old;
  }
  return { seq: old.seq.concat(more.seq.slice(skip)), [name]: old[name].concat(more[name].slice(skip)) };
}

function spans(old, more, keyOf) {
  if (!more?.length) {
    return old;
  }
  const renewed = new Map(more.map((each) => [keyOf(each), each]));
  const kept = old.map((each) => {
    const key = keyOf(each);
    const found = renewed.get(key);
    renewed.delete(key);
    return found ?? each;
  });
  return kept.concat([...renewed.values()]);
}

function merged(old, more, keyOf = (each) => each) {
  if (!more?.length) {
    return old;
  }
  const known = new Set(old.map(keyOf));
  return old.concat(more.filter((each) => !known.has(keyOf(each))));
}
