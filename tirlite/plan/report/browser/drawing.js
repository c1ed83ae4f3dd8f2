// Draws the plane of offsets over time, and the bytes that are live below it.

const plane = at("plane"), strip = at("live");
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
// What is to the left depends on the numbers that stand there.
const margin = { left: 8, right: 8, top: 16, bottom: 18 };

function whole() { return { left: drawn.first, right: drawn.last, bottom: 0, top: drawn.top } }

function prepared(canvas) {
  const scale = window.devicePixelRatio || 1, { width, height } = canvas.getBoundingClientRect();
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.font = "11px sans-serif";
  return { pen, width, height };
}

function frame(width, height) {
  const view = state.view;
  const perTime = (width - margin.left - margin.right) / (view.right - view.left);
  const perByte = (height - margin.top - margin.bottom) / (view.top - view.bottom);
  return {
    perTime, perByte,
    x: time => margin.left + (time - view.left) * perTime,
    y: byte => height - margin.bottom - (byte - view.bottom) * perByte,
    time: x => view.left + (x - margin.left) / perTime,
    byte: y => view.bottom + (height - margin.bottom - y) / perByte,
  };
}

function draw() {
  const { pen, width, height } = prepared(plane);
  margin.left = 10 + Math.ceil(pen.measureText(Math.ceil(drawn.top).toLocaleString("en-US")).width);
  const f = frame(width, height);
  const view = state.view, mark = colour("--mark"), rule = colour("--rule"), text = colour("--text");
  pen.textBaseline = "middle";
  if (drawn.plan.fault !== undefined) {
    drawLive();
    return label(pen, drawn.plan.fault, margin.left, 20, mark, "left");
  }
  pen.save();
  pen.beginPath(); pen.rect(margin.left, 0, width - margin.left, height); pen.clip();
  for (let k = 0; k < count; k++) {
    const low = f.y(drawn.bottom[k]), high = f.y(drawn.bottom[k] + drawn.size[k]);
    if (low < 0 || high > height) continue;
    const spans = buffers.live[k], picked = state.chosen.includes(k) || state.hovered === k;
    for (let s = 0; s < spans.length; s += 2) {
      const from = f.x(spans[s]), to = f.x(spans[s + 1]);
      if (to < margin.left || from > width) continue;
      const w = Math.max(to - from, 0.5), h = Math.max(low - high, 0.5);
      pen.fillStyle = FILLS[k % FILLS.length];
      pen.fillRect(from, high, w, h);
      if (picked || (w > 4 && h > 4)) {
        pen.strokeStyle = picked ? mark : "#333";
        pen.lineWidth = picked ? 2.5 : 0.6;
        pen.strokeRect(from, high, w, h);
      }
      if (h >= 11 && w >= 24) {
        pen.fillStyle = "#000";
        const label = fitted(pen, buffers.id[k], to - Math.max(from, margin.left) - 6);
        if (label) pen.fillText(label, Math.max(from, margin.left) + 3, (low + high) / 2);
      }
    }
  }
  pen.restore();
  pen.lineWidth = 1;
  for (const value of ticks(view.bottom, view.top)) label(pen, value.toLocaleString("en-US"), margin.left - 4, f.y(value), colour("--faint"), "right");
  for (const value of drawn.lines) across(pen, f.y(value), width, colour("--faint"), []);
  if (!state.before) {
    across(pen, f.y(drawn.bound), width, mark, [5, 3]);
  }
  const [time, bytes] = peak();
  pen.setLineDash([2, 3]);
  pen.strokeStyle = mark;
  pen.beginPath(); pen.moveTo(f.x(time), 0); pen.lineTo(f.x(time), height); pen.stroke();
  pen.setLineDash([]);
  const told = `peak: ${bytes.toLocaleString("en-US")} bytes live at time ${time}`;
  const side = f.x(time) > width / 2 ? "right" : "left", from = f.x(time) + (side === "left" ? 4 : -4);
  if (!state.before) labelBound(pen, width, f.y(drawn.bound), side === "left" ? [from, from + pen.measureText(told).width] : [from - pen.measureText(told).width, from]);
  label(pen, told, from, 8, mark, side);
  pen.strokeStyle = rule;
  label(pen, `time ${Math.floor(view.left)}`, margin.left, height - 8, text, "left");
  label(pen, String(Math.ceil(view.right)), width - margin.right, height - 8, text, "right");
  drawLive();
}

function drawLive() {
  const { pen, width, height } = prepared(strip), f = frame(width, height), most = Math.max(peak()[1], 1);
  pen.fillStyle = colour("--shade");
  drawn.live.forEach(([time, bytes], k) => {
    const next = k + 1 < drawn.live.length ? drawn.live[k + 1][0] : time;
    const from = Math.max(f.x(time), margin.left), to = Math.min(f.x(next), width), high = (height - 18) * bytes / most;
    if (to > from) pen.fillRect(from, height - high, Math.max(to - from, 0.5), high);
  });
  label(pen, "bytes live", 8, 9, colour("--text"), "left");
}

function peak() { return drawn.live.reduce((best, each) => (each[1] > best[1] ? each : best), [drawn.first, 0]) }

/** Names the lower bound where the words of the peak, between `taken` at the top, do not stand. */
function labelBound(pen, width, y, taken) {
  const words = `lower bound ${drawn.bound.toLocaleString("en-US")}`, wide = pen.measureText(words).width + 8;
  const right = width - margin.right, left = margin.left + 2, isFar = Math.abs(y - 7 - 8) > 14;
  if (isFar || right - wide > taken[1]) label(pen, words, right, y - 7, colour("--mark"), "right");
  else if (left + wide < taken[0]) label(pen, words, left, y - 7, colour("--mark"), "left");
  else label(pen, words, right, y + 9, colour("--mark"), "right");
}

/** Round numbers inside of [low, high], three to eight of them. */
function ticks(low, high) {
  const rough = (high - low) / 8, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(each => each * power).find(each => each >= rough), found = [];
  for (let value = Math.ceil(low / step + 0.2) * step; value < high - step / 5; value += step) found.push(Math.round(value * 1e6) / 1e6);
  return found;
}

function across(pen, y, width, stroke, dashes) {
  pen.setLineDash(dashes);
  pen.strokeStyle = stroke;
  pen.beginPath(); pen.moveTo(0, y); pen.lineTo(width, y); pen.stroke();
  pen.setLineDash([]);
}

function label(pen, words, x, y, fill, align) {
  pen.textAlign = align;
  pen.textBaseline = "middle";
  pen.fillStyle = colour("--back");
  const w = pen.measureText(words).width;
  pen.fillRect(align === "right" ? x - w - 2 : x - 2, y - 7, w + 4, 14);
  pen.fillStyle = fill;
  pen.fillText(words, x, y);
  pen.textAlign = "left";
}

function fitted(pen, name, room) {
  if (pen.measureText(name).width <= room) return name;
  const letters = Math.floor(room / 6.2) - 1;
  return letters >= 2 ? `${name.slice(0, letters)}…` : "";
}
