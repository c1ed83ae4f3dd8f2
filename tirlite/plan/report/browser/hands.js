// What hands do with the page: point, click, zoom, pan, choose values.

function refresh(keepView) {
  drawn = layout();
  if (!keepView || state.view === null) state.view = whole();
  tellFigures(); describe(at("under"), state.hovered); tellPair(); draw();
}

function bufferAt(x, y) {
  if (drawn.plan.fault !== undefined) return -1;
  const box = plane.getBoundingClientRect(), f = frame(box.width, box.height), time = f.time(x), byte = f.byte(y);
  for (let k = count - 1; k >= 0; k--) {
    if (byte >= drawn.bottom[k] && byte < drawn.bottom[k] + drawn.size[k] && isLive(k, time)) return k;
  }
  return -1;
}

function zoom(factor, x, y) {
  const box = plane.getBoundingClientRect(), f = frame(box.width, box.height), v = state.view;
  const time = f.time(x ?? box.width / 2), byte = f.byte(y ?? box.height / 2);
  const next = {
    left: time - (time - v.left) * factor, right: time + (v.right - time) * factor,
    bottom: byte - (byte - v.bottom) * factor, top: byte + (v.top - byte) * factor,
  };
  if (next.right - next.left < 1e-3 || next.top - next.bottom < 1e-3) return;
  state.view = next.right - next.left >= drawn.last - drawn.first ? whole() : next;
  draw();
}

function pan(dx, dy) {
  const box = plane.getBoundingClientRect(), f = frame(box.width, box.height), v = state.view, all = whole();
  const time = Math.min(Math.max(-dx / f.perTime, all.left - v.left), all.right - v.right);
  const byte = Math.min(Math.max(dy / f.perByte, all.bottom - v.bottom), all.top - v.top);
  state.view = { left: v.left + time, right: v.right + time, bottom: v.bottom + byte, top: v.top + byte };
  draw();
}

function choose(k) {
  if (k < 0) state.chosen = [];
  else if (state.chosen.includes(k)) state.chosen = state.chosen.filter(each => each !== k);
  else state.chosen = [...state.chosen.slice(-1), k];
  tellPair(); draw();
}

const fingers = new Map();
let moved = false;
plane.addEventListener("pointerdown", event => {
  plane.setPointerCapture(event.pointerId);
  fingers.set(event.pointerId, [event.offsetX, event.offsetY]);
  moved = false;
});
plane.addEventListener("pointermove", event => {
  const last = fingers.get(event.pointerId), { offsetX: x, offsetY: y } = event;
  if (last === undefined) {
    const k = bufferAt(x, y);
    if (k !== state.hovered) { state.hovered = k; describe(at("under"), k); draw() }
    return;
  }
  if (Math.hypot(x - last[0], y - last[1]) < 3 && !moved) return;
  moved = true;
  const other = [...fingers].find(([id]) => id !== event.pointerId);
  fingers.set(event.pointerId, [x, y]);
  if (other === undefined) return pan(x - last[0], y - last[1]);
  const gap = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
  zoom(gap(last, other[1]) / Math.max(gap([x, y], other[1]), 1), other[1][0], other[1][1]);
});
for (const end of ["pointerup", "pointercancel"]) plane.addEventListener(end, event => {
  fingers.delete(event.pointerId);
  if (end === "pointerup" && !moved) {
    const k = bufferAt(event.offsetX, event.offsetY);
    describe(at("under"), k);
    choose(k);
  }
});
plane.addEventListener("wheel", event => { event.preventDefault(); zoom(Math.exp(event.deltaY / 400), event.offsetX, event.offsetY) }, { passive: false });
plane.addEventListener("keydown", event => {
  const step = 40, does = {
    "+": () => zoom(0.7), "-": () => zoom(1 / 0.7), "0": () => { state.view = whole(); draw() },
    ArrowLeft: () => pan(step, 0), ArrowRight: () => pan(-step, 0), ArrowUp: () => pan(0, step), ArrowDown: () => pan(0, -step),
  }[event.key];
  if (does) { event.preventDefault(); does() }
});
at("closer").onclick = () => zoom(0.6);
at("farther").onclick = () => zoom(1 / 0.6);
at("whole").onclick = () => { state.view = whole(); draw() };
for (const name of ["after", "before"]) at(name).onclick = () => {
  state.before = name === "before";
  for (const each of ["after", "before"]) at(each).setAttribute("aria-pressed", String(each === name));
  refresh(false);
};
at("find").onchange = event => {
  const k = buffers.id.indexOf(event.target.value);
  if (k >= 0) { state.hovered = k; describe(at("under"), k); choose(k) }
};

data.dims.forEach((dim, k) => {
  const box = document.createElement("label"), slider = document.createElement("input"), number = document.createElement("input");
  const values = dim.values, set = (value, moving) => {
    state.values[k] = value;
    number.value = String(value);
    if (values) slider.value = String(values.indexOf(value));
    else if (!moving) slider.value = String(value);
    refresh(false);
  };
  slider.type = "range";
  number.type = "number";
  box.append(dim.name, slider, number);
  if (values) {
    Object.assign(slider, { min: 0, max: values.length - 1, step: 1, value: values.indexOf(dim.value) });
    number.readOnly = true;
    slider.oninput = () => set(values[Number(slider.value)], true);
  } else {
    Object.assign(slider, { min: dim.low, max: dim.high, step: dim.step, value: dim.value });
    Object.assign(number, { min: dim.low, step: dim.step });
    if (dim.most !== null) number.max = dim.most;
    slider.oninput = () => set(Number(slider.value), true);
    number.onchange = () => {
      const value = Math.round(Number(number.value));
      if (number.checkValidity() && Number.isSafeInteger(value)) set(value, false);
      else number.reportValidity();
    };
  }
  number.value = String(dim.value);
  at("dims").append(box);
});

document.querySelector("h1").textContent = data.title;
for (const name of buffers.id.slice(0, LISTED)) {
  const option = document.createElement("option");
  option.value = name;
  at("names").append(option);
}
if (data.outside.length) {
  const heading = document.createElement("h2");
  heading.textContent = "Not planned";
  at("outside").append(heading);
  for (const [name, why] of data.outside) line(at("outside"), `${name}: ${why}`);
}
window.addEventListener("resize", draw);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
// `#first,second` in the address chooses two buffers.
const named = location.hash.length > 1 ? decodeURIComponent(location.hash.slice(1)).split(",") : [];
state.chosen = named.map(name => buffers.id.indexOf(name)).filter(k => k >= 0).slice(0, 2);
refresh(false);
