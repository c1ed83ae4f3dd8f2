"use strict";

// What is drawn: sizes at the chosen values, and where each buffer lies.

const data = JSON.parse(document.getElementById("data").textContent);
const at = id => document.getElementById(id);
const { buffers, reasons, atoms, formulas } = data;
const count = buffers.id.length;
const FILLS = ["#8ecae6", "#ffb703", "#b7e4c7", "#f4acb7", "#cdb4db", "#ffd6a5", "#a3c4f3", "#d9ed92", "#e5989b", "#90dbf4"];
const LISTED = 2000;  // as many names as a browser's list bears

// A size is a number, a text of digits where that is too long for one, or [the number of a formula]

const floored = (a, b) => a / b - (a % b !== 0n && (a < 0n) !== (b < 0n) ? 1n : 0n);
const functions = {
  quotient: ([a, b]) => floored(a, b),
  remainder: ([a, b]) => a - b * floored(a, b),
  maximum: all => all.reduce((a, b) => (a > b ? a : b)),
  minimum: all => all.reduce((a, b) => (a < b ? a : b)),
};

function evaluator(values) {
  const known = new Map(), done = new Map();
  const atom = index => {
    if (!known.has(index)) {
      const { dim, name, of } = atoms[index];
      known.set(index, name === undefined ? BigInt(values[dim]) : functions[name](of.map(exact)));
    }
    return known.get(index);
  };
  const formula = index => {
    if (!done.has(index)) {
      const product = ([factor, ...parts]) => parts.reduce((all, part) => all * atom(part), BigInt(factor));
      done.set(index, formulas[index].terms.reduce((sum, term) => sum + product(term), 0n));
    }
    return done.get(index);
  };
  const exact = size => (Array.isArray(size) ? formula(size[0]) : BigInt(size));
  return exact;
}

const spelled = size => (Array.isArray(size) ? formulas[size[0]].text : String(size));
const isSymbolic = data.dims.length > 0;
const told = (size, exact) => {
  const value = exact(size).toLocaleString("en-US");
  return Array.isArray(size) && spelled(size) !== value ? `${spelled(size)} = ${value}` : value;
};

// The plan for the chosen values, or every buffer at a place of its own.

const state = { values: data.dims.map(dim => dim.value), before: false, hovered: -1, chosen: [], view: null };
let drawn;

function chosenPlan() {
  return data.plans.find(plan => plan.at === null || plan.at.every((value, k) => value === state.values[k]));
}

function layout() {
  const plan = chosenPlan(), exact = evaluator(state.values);
  if (plan.fault !== undefined) return { plan, exact, size: [], bottom: [], lines: [], bound: 0, first: 0, last: 1, top: 1, live: [] };
  const size = buffers.size.map(each => Number(exact(each)));
  const bottom = new Float64Array(count), bases = [], lines = [];
  let height = 0;
  if (state.before) {
    for (let k = 0; k < count; k++) { bottom[k] = height; height += size[k] }
  } else {
    const memoryBase = {};
    plan.pools.forEach(pool => {
      const copies = pool.copies;
      if (plan.ends === null) { bases.push(height); height += Number(exact(pool.size)) * copies; return }
      if (!(pool.memory in memoryBase)) {
        memoryBase[pool.memory] = height;
        height += Number(exact(plan.ends[pool.memory])) * copies;
      }
      bases.push(memoryBase[pool.memory] + Number(exact(pool.start)));
    });
    for (let k = 0; k < count; k++) bottom[k] = bases[plan.pool[k]] + Number(exact(plan.offset[k]));
    if (bases.length <= 50) lines.push(...bases);
  }
  let first = Infinity, last = -Infinity;
  for (const spans of buffers.live) { first = Math.min(first, spans[0]); last = Math.max(last, spans[spans.length - 1]) }
  if (first === Infinity) { first = 0; last = 1 }
  const bound = Number(exact(plan.bound));
  return { plan, exact, size, bottom, lines, bound, first, last, top: Math.max(height, bound, 1), live: liveBytes(plan, size) };
}

/** Steps [time, bytes live from there on]: where one buffer overwrites another in place, the bytes count once. */
function liveBytes(plan, size) {
  const changes = new Map();
  const change = (time, bytes) => changes.set(time, (changes.get(time) || 0) + bytes);
  const copies = k => plan.pools[plan.pool[k]].copies;
  const inChain = new Set(plan.chains.flat());
  for (let k = 0; k < count; k++) {
    if (inChain.has(k)) continue;
    for (let s = 0; s < buffers.live[k].length; s += 2) {
      change(buffers.live[k][s], size[k] * copies(k));
      change(buffers.live[k][s + 1], -size[k] * copies(k));
    }
  }
  for (const chain of plan.chains) {
    const times = [...new Set(chain.flatMap(k => buffers.live[k]))].sort((a, b) => a - b);
    let held = 0;
    for (const time of times) {
      const most = Math.max(0, ...chain.filter(k => isLive(k, time)).map(k => size[k] * copies(k)));
      change(time, most - held);
      held = most;
    }
  }
  let bytes = 0;
  return [...changes].sort((a, b) => a[0] - b[0]).map(([time, more]) => [time, (bytes += more)]);
}

function isLive(k, time) {
  const spans = buffers.live[k];
  for (let s = 0; s < spans.length; s += 2) if (spans[s] <= time && time < spans[s + 1]) return true;
  return false;
}
