/**
 * Where the boxes and lines of a directed graph stand: layers from left to right (or from top to bottom), boxes ordered so
 * that few lines cross, long lines led around boxes, lines that go back led below everything.
 *
 * Pure: sizes in, places out. Along is the direction of the layers, across the other one.
 *
 * @typedef {{id: string, width: number, height: number}} Box
 * @typedef {{from: string, to: string}} Line
 */

const SWEEPS = 8;
const SETTLES = 24;
const THIN = 10;

/**
 * @param {Box[]} boxes @param {Line[]} lines @param {string} entry
 * @param {{down?: boolean, layerGap?: number, wideGap?: number, boxGap?: number, laneGap?: number}} [how] behind a layer from
 *   which a line with words (`said`) leads forward there is the wide gap
 */
export function layout(boxes, lines, entry, { down = false, layerGap = 64, wideGap = layerGap, boxGap = 20, laneGap = 18 } = {}) {
  const sized = new Map(boxes.map((box) => [box.id, down ? { along: box.height, across: box.width } : { along: box.width, across: box.height }]));
  const known = lines.filter((line) => sized.has(line.from) && sized.has(line.to));
  const back = backward(boxes, known, entry);
  const forward = known.filter((line) => !back.has(line));
  const ranks = ranked(boxes, forward);
  const { layers, chains } = layered(boxes, forward, ranks);
  ordered(layers, chains);
  const spoken = new Set(forward.filter((line) => line.said).map((line) => ranks.get(line.from)));
  const gaps = layers.map((_, rank) => (spoken.has(rank) ? wideGap : layerGap));
  const places = placed(layers, chains, sized, gaps, boxGap);
  const extent = extentOf(places);
  const routes = new Map(forward.map((line) => [line, route(chains.get(line), places)]));
  let lane = extent.across;
  for (const line of back) {
    lane += laneGap;
    routes.set(line, returning(places.get(line.from), places.get(line.to), lane));
  }
  return turned({ places, boxes, lines: known, routes, back, along: extent.along, across: lane }, down);
}

// --- layers

/** Lines that close a circle, seen from the entry: they are drawn as ways back. */
function backward(boxes, lines, entry) {
  const out = new Map(boxes.map((box) => [box.id, lines.filter((line) => line.from === box.id)]));
  const state = new Map();
  const found = new Set();
  const visit = (id) => {
    state.set(id, "open");
    for (const line of out.get(id)) {
      if (state.get(line.to) === "open") {
        found.add(line);
      } else if (!state.has(line.to)) {
        visit(line.to);
      }
    }
    state.set(id, "done");
  };
  for (const id of [entry, ...boxes.map((box) => box.id)]) {
    if (out.has(id) && !state.has(id)) {
      visit(id);
    }
  }
  return found;
}

/** The layer of each box: one more than the farthest box before it. */
function ranked(boxes, lines) {
  const into = new Map(boxes.map((box) => [box.id, lines.filter((line) => line.to === box.id)]));
  const ranks = new Map();
  const rank = (id) => {
    if (!ranks.has(id)) {
      ranks.set(id, Math.max(-1, ...into.get(id).map((line) => rank(line.from))) + 1);
    }
    return ranks.get(id);
  };
  boxes.forEach((box) => rank(box.id));
  return ranks;
}

/** Boxes by layer, with a thin stop in every layer that a long line passes. */
function layered(boxes, lines, ranks) {
  const layers = [];
  const put = (id, rank) => (layers[rank] ??= []).push(id);
  boxes.forEach((box) => put(box.id, ranks.get(box.id)));
  const chains = new Map();
  lines.forEach((line, at) => {
    const chain = [line.from];
    for (let rank = ranks.get(line.from) + 1; rank < ranks.get(line.to); rank += 1) {
      const stop = `\u0000${at}/${rank}`;
      put(stop, rank);
      chain.push(stop);
    }
    chains.set(line, [...chain, line.to]);
  });
  return { layers: Array.from(layers, (layer) => layer || []), chains };
}

function neighbours(chains) {
  const before = new Map();
  const after = new Map();
  const add = (map, key, value) => map.set(key, [...(map.get(key) || []), value]);
  for (const chain of chains.values()) {
    for (let at = 1; at < chain.length; at += 1) {
      add(before, chain[at], chain[at - 1]);
      add(after, chain[at - 1], chain[at]);
    }
  }
  return { before, after };
}

/** Orders each layer by where its neighbours stand, to and fro. */
function ordered(layers, chains) {
  const { before, after } = neighbours(chains);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const down = sweep % 2 === 0;
    const positions = new Map();
    layers.forEach((layer) => layer.forEach((id, at) => positions.set(id, at)));
    for (const layer of down ? layers : [...layers].reverse()) {
      const middle = new Map(layer.map((id) => [id, mean((down ? before : after).get(id), positions) ?? positions.get(id)]));
      layer.sort((a, b) => middle.get(a) - middle.get(b));
      layer.forEach((id, at) => positions.set(id, at));
    }
  }
}

function mean(ids, values) {
  return ids?.length ? ids.reduce((sum, id) => sum + values.get(id), 0) / ids.length : null;
}

// --- places

/** Every box and stop with its start and size, along and across. */
function placed(layers, chains, sized, gaps, boxGap) {
  const places = new Map();
  let start = 0;
  for (const [rank, layer] of layers.entries()) {
    const depth = Math.max(0, ...layer.map((id) => sized.get(id)?.along ?? 0));
    let across = 0;
    for (const id of layer) {
      const size = sized.get(id) ?? { along: depth, across: THIN };
      places.set(id, { along: start, across, length: size.along, breadth: size.across, depth });
      across += size.across + boxGap;
    }
    start += depth + gaps[rank];
  }
  settle(layers, places, neighbours(chains), boxGap);
  return places;
}

/** Moves boxes towards the middle of their neighbours, without letting two overlap. */
function settle(layers, places, { before, after }, gap) {
  const centre = (id) => places.get(id).across + places.get(id).breadth / 2;
  for (let round = 0; round < SETTLES; round += 1) {
    const forth = round % 2 === 0;
    for (const layer of forth ? layers : [...layers].reverse()) {
      const wished = layer.map((id) => {
        const near = (forth ? before : after).get(id) || (forth ? after : before).get(id) || [];
        const middle = near.length ? near.reduce((sum, each) => sum + centre(each), 0) / near.length : centre(id);
        return middle - places.get(id).breadth / 2;
      });
      spread(layer, wished, places, gap);
    }
  }
  const least = Math.min(...[...places.values()].map((place) => place.across));
  places.forEach((place) => (place.across -= least));
}

/** The places nearest to the wished ones that keep the order and the gaps: groups that touch move as one. */
function spread(layer, wished, places, gap) {
  const groups = [];
  layer.forEach((id, at) => {
    groups.push({ ids: [id], from: wished[at], size: places.get(id).breadth, wish: wished[at], weight: 1 });
    while (groups.length > 1 && groups.at(-1).from < groups.at(-2).from + groups.at(-2).size + gap) {
      const later = groups.pop();
      const earlier = groups.pop();
      const shift = earlier.size + gap;
      const weight = earlier.weight + later.weight;
      const wish = (earlier.wish * earlier.weight + (later.wish - shift) * later.weight) / weight;
      groups.push({ ids: [...earlier.ids, ...later.ids], from: wish, size: shift + later.size, wish, weight });
    }
  });
  for (const group of groups) {
    let at = group.from;
    for (const id of group.ids) {
      places.get(id).across = at;
      at += places.get(id).breadth + gap;
    }
  }
}

function extentOf(places) {
  const all = [...places.values()];
  return { along: Math.max(0, ...all.map((place) => place.along + place.length)), across: Math.max(0, ...all.map((place) => place.across + place.breadth)) };
}

// --- lines

/** Points of a line forward: out of one box, straight through its stops, into the other. */
function route(chain, places) {
  const points = [];
  chain.forEach((id, at) => {
    const place = places.get(id);
    const middle = place.across + place.breadth / 2;
    if (at > 0) {
      points.push([place.along, middle]);
    }
    if (at < chain.length - 1) {
      points.push([place.along + (at === 0 ? place.length : place.depth), middle]);
    }
  });
  return points;
}

/** Points of a line back: down from one box, along a lane of its own, up into the other. */
function returning(from, to, lane) {
  const leave = from.along + from.length * 0.62;
  const arrive = to.along + to.length * 0.38;
  return [
    [leave, from.across + from.breadth],
    [leave, lane],
    [arrive, lane],
    [arrive, to.across + to.breadth],
  ];
}

// --- the answer, in x and y

function turned({ places, boxes, lines, routes, back, along, across }, down) {
  const point = ([a, b]) => (down ? [b, a] : [a, b]);
  return {
    width: down ? across : along,
    height: down ? along : across,
    boxes: boxes.map((box) => {
      const place = places.get(box.id);
      const [x, y] = point([place.along, place.across]);
      return { ...box, x, y };
    }),
    lines: lines.map((line) => ({ ...line, back: back.has(line), points: routes.get(line).map(point) })),
    down,
  };
}

/** The path of an SVG for the points of a line: soft curves forward, rounded corners back. */
export function curve({ points, back }, down) {
  if (back) {
    return cornered(points);
  }
  let path = `M${pair(points[0])}`;
  for (let at = 1; at < points.length; at += 1) {
    const [x1, y1] = points[at - 1];
    const [x2, y2] = points[at];
    const bend = down ? `${x1} ${(y1 + y2) / 2} ${x2} ${(y1 + y2) / 2}` : `${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2}`;
    path += x1 === x2 || y1 === y2 ? `L${pair(points[at])}` : `C${bend} ${pair(points[at])}`;
  }
  return path;
}

function cornered(points) {
  const radius = 8;
  let path = `M${pair(points[0])}`;
  for (let at = 1; at < points.length - 1; at += 1) {
    path += `L${pair(towards(points[at], points[at - 1], radius))}Q${pair(points[at])} ${pair(towards(points[at], points[at + 1], radius))}`;
  }
  return `${path}L${pair(points.at(-1))}`;
}

function towards([x, y], [toX, toY], by) {
  const far = Math.hypot(toX - x, toY - y) || 1;
  const share = Math.min(0.5, by / far);
  return [x + (toX - x) * share, y + (toY - y) * share];
}

function pair([x, y]) {
  return `${Math.round(x * 10) / 10} ${Math.round(y * 10) / 10}`;
}
