// What is told in words: figures, one buffer, two buffers.

function spansOf(k) {
  const spans = buffers.live[k], parts = [];
  for (let s = 0; s < spans.length; s += 2) parts.push(`[${spans[s]}, ${spans[s + 1]})`);
  return parts.join(" ");
}

function whereabouts(k) {
  const plan = drawn.plan, pool = plan.pools[plan.pool[k]];
  return `\`${pool.name}\` at ${told(plan.offset[k], drawn.exact)}`;
}

const whyOf = k => reasons[drawn.plan.why[k]];

function describe(box, k) {
  box.replaceChildren();
  if (k < 0 || drawn.plan.fault !== undefined) return line(box, "Point at a buffer; click two of them to ask whether and why they share.", "faint");
  line(box, buffers.id[k]).style.fontWeight = "bold";
  line(box, `${told(buffers.size[k], drawn.exact)} bytes in ${whereabouts(k)}`);
  line(box, `live ${spansOf(k)}`);
  line(box, whyOf(k));
  if (buffers.from[k]) line(box, buffers.from[k], "faint");
}

function line(box, words, kind) {
  const part = document.createElement("p");
  part.textContent = words;
  if (kind) part.className = kind;
  box.append(part);
  return part;
}

/** Why two buffers share storage, or do not: in the words of `plan.explain`, but for those that strategy `tvm` has of its own. */
function explained(a, b) {
  const plan = drawn.plan, name = k => buffers.id[k], pool = k => plan.pools[plan.pool[k]].name;
  const pair = `\`${name(a)}\` and \`${name(b)}\``, same = plan.pool[a] === plan.pool[b];
  const taken = plan.pairs.find(([to, from]) => (to === a && from === b) || (to === b && from === a));
  if (taken) {
    const [to, from] = taken;
    return `\`${name(to)}\` overwrites \`${name(from)}\` in place: ${name(from)} is live ${spansOf(from)}, ${name(to)} ${spansOf(to)}`;
  }
  const common = meeting(a, b);
  if (common !== null) {
    const how = same ? "at different offsets" : "in different pools";
    return `${pair} are both live at time ${common}, so they lie ${how}${noHandover(a, b)}`;
  }
  if (same) return `${pair} share \`${pool(a)}\`: ${name(a)} is live ${spansOf(a)}, ${name(b)} ${spansOf(b)}; ${name(b)} ${whyOf(b)}`;
  const [mine, other] = [a, b].map(k => data.memories[buffers.memories[k]]);
  if (!mine.some(each => other.includes(each))) {
    return `${pair} live in different memories: ${mine.join(" or ")}, and ${other.join(" or ")}`;
  }
  const lone = [a, b].find(k => plan.alone.includes(k));
  if (lone !== undefined) return `${pair} could share, and do not: ${name(lone)} ${whyOf(lone)}`;
  const whole = k => `${name(k)} lies in \`${pool(k)}\`${company(k)} and ${whyOf(k)}`;
  return `${pair} could share, and do not, as other choices were preferred: ${whole(a)}; ${whole(b)}`;
}

function company(k) {
  const pool = drawn.plan.pool, others = [];
  for (let other = 0; other < count && others.length < 6; other++) if (other !== k && pool[other] === pool[k]) others.push(buffers.id[other]);
  return others.length ? ` with ${others.slice(0, 5).join(", ")}${others.length > 5 ? " and others" : ""}` : "";
}

function meeting(a, b) {
  let first = null;
  const one = buffers.live[a], other = buffers.live[b];
  for (let s = 0; s < one.length; s += 2) for (let t = 0; t < other.length; t += 2) {
    const from = Math.max(one[s], other[t]);
    if (from < Math.min(one[s + 1], other[t + 1]) && (first === null || from < first)) first = from;
  }
  return first;
}

function noHandover(a, b) {
  for (const [to, from] of [[a, b], [b, a]]) {
    const found = data.handovers.find(each => each[0] === to && each[1] === from);
    if (!found) continue;
    const [into, out] = [buffers.id[to], buffers.id[from]];
    return found[2] === null
      ? `\n\`${into}\` could overwrite \`${out}\` in place, but other choices were preferred`
      : `\n\`${into}\` cannot overwrite \`${out}\` in place: ${found[2]}`;
  }
  return "";
}

function tellPair() {
  const box = at("pair"), [a, b] = state.chosen;
  box.replaceChildren();
  if (a === undefined || drawn.plan.fault !== undefined) return line(box, "None is chosen.", "faint");
  if (b === undefined) return line(box, `\`${buffers.id[a]}\` is chosen; click another one.`);
  line(box, explained(a, b));
}

function tellFigures() {
  if (drawn.plan.fault !== undefined) return at("figures").replaceChildren();
  const plan = drawn.plan, total = drawn.exact(plan.total), bound = drawn.exact(plan.bound);
  const gap = bound > 0n ? `${(100 * Number(total - bound) / Number(bound)).toFixed(2)} %` : "0 %";
  const alone = drawn.size.reduce((sum, each) => sum + each, 0);
  const rows = [
    ["total", `${told(plan.total, drawn.exact)} bytes`], ["lower bound", `${told(plan.bound, drawn.exact)} bytes`], ["gap", gap],
    ["without sharing", `${alone.toLocaleString("en-US")} bytes`], ["buffers", count.toLocaleString("en-US")], ["strategy", plan.strategy],
  ];
  at("figures").replaceChildren(...rows.map(([what, value]) => {
    const row = document.createElement("div"), term = document.createElement("dt"), meaning = document.createElement("dd");
    term.textContent = what;
    meaning.textContent = value;
    row.append(term, meaning);
    return row;
  }));
}
