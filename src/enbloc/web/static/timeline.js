// The timeline (Gantt): a row a gang; it waits, runs, and is expected to start. Wheel zooms, dragging pans, arrow keys do both.
import { duration, element, instant, isDark, placeTip, swatch, ticks } from "./format.js";

const ROW = 20, BAR = 13, AXIS = 24;
const MOST_PRINTED = 400; // rows, on paper

export const spanOf = (model) => {
  let from = model.asOf, to = model.asOf;
  for (const gang of model.gangs) for (const time of [gang.came, gang.started, gang.ended, gang.expected])
    if (time !== null && time !== undefined) { from = Math.min(from, time); to = Math.max(to, time); }
  return { from, to: to > from ? to + (to - from) * 0.02 : from + 1 };
};

const colours = () => isDark()
  ? { wait: "#b98a2e", run: "#4f90d0", fail: "#d5695f", past: "#46566b", text: "#e6e9ee", dim: "#a2aab6", line: "#2a303a", now: "#e6e9ee", stripe: "#14171cb0", row: "#1d2229" }
  : { wait: "#e0a93b", run: "#3d7dbb", fail: "#c9554b", past: "#9db6d0", text: "#1d2127", dim: "#5c6470", line: "#e6e9ee", now: "#1d2127", stripe: "#ffffffb0", row: "#f3f5f8" };

const labelsOf = (width) => Math.round(Math.min(190, width * 0.32)); // pixels for the names of gangs

const draw = (canvas, model, rows, view, width, { hovered }) => {
  const LABELS = labelsOf(width), ratio = Math.min(window.devicePixelRatio || 1, 2), bottom = parseFloat(canvas.style.height);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, bottom);
  context.font = "11px system-ui, sans-serif";
  const colour = colours();
  const x = (time) => LABELS + ((time - view.from) / (view.to - view.from)) * (width - LABELS - 6);
  context.strokeStyle = colour.line; context.fillStyle = colour.dim; context.textAlign = "center"; context.lineWidth = 1;
  for (const [time, label] of ticks(view.from, view.to, Math.max(3, Math.floor((width - LABELS) / 85)), model.virtual)) {
    context.beginPath(); context.moveTo(Math.round(x(time)) + 0.5, AXIS - 4); context.lineTo(Math.round(x(time)) + 0.5, bottom); context.stroke();
    const half = context.measureText(label).width / 2;
    context.fillText(label, Math.min(Math.max(x(time), LABELS + half), width - half - 1), 12);
  }
  const bar = (from, to, y, fill, dashed) => {
    const left = Math.max(LABELS, x(from)), right = Math.min(width, x(to));
    if (right <= LABELS || left >= width || to < from) return;
    if (dashed) { context.strokeStyle = fill; context.setLineDash([3, 3]); context.strokeRect(left + 0.5, y + 0.5, Math.max(right - left - 1, 2), BAR - 1); context.setLineDash([]); }
    else { context.fillStyle = fill; context.fillRect(left, y, Math.max(right - left, 1.5), BAR); }
  };
  const hatched = (from, to, y) => { // room was reserved or held for it
    const left = Math.max(LABELS, x(from)), right = Math.min(width, x(to));
    if (right <= left) return;
    context.save();
    context.beginPath(); context.rect(left, y, right - left, BAR); context.clip();
    context.strokeStyle = colour.stripe; context.lineWidth = 2.5; context.beginPath();
    for (let step = left - BAR; step < right; step += 8) { context.moveTo(step, y + BAR); context.lineTo(step + BAR, y); }
    context.stroke(); context.restore();
  };
  const shown = Math.ceil(bottom / ROW) + 1;
  rows.slice(view.first, view.first + shown).forEach((gang, index) => {
    const y = AXIS + index * ROW + 3;
    if (hovered === index + view.first) { context.fillStyle = colour.row; context.fillRect(0, y - 3, width, ROW); }
    context.fillStyle = colour.text;
    context.textAlign = "left";
    let label = gang.gang;
    const room = LABELS - 10;
    if (context.measureText(label).width > room) { let cut = 1; while (cut < label.length && context.measureText(`…${label.slice(cut)}`).width > room) cut += 1; label = `…${label.slice(cut)}`; }
    context.fillText(label, 0, y + 10);
    if (gang.came !== null) bar(gang.came, gang.started ?? gang.ended ?? model.asOf, y, colour.wait);
    for (const [from, to] of gang.claimed || []) hatched(from, to ?? model.asOf, y);
    if (gang.started !== null && gang.started !== undefined)
      bar(gang.started, gang.ended ?? model.asOf, y, gang.state === "Failed" ? colour.fail : gang.ended === null ? colour.run : colour.past);
    if (gang.expected) bar(gang.expected, gang.expected + (gang.runTime || (view.to - view.from) * 0.05), y, colour.run, true);
  });
  if (x(model.asOf) >= LABELS && x(model.asOf) <= width) {
    context.strokeStyle = colour.now; context.lineWidth = 1;
    context.beginPath(); context.moveTo(Math.round(x(model.asOf)) + 0.5, AXIS - 6); context.lineTo(Math.round(x(model.asOf)) + 0.5, bottom); context.stroke();
  }
};

const textOf = (gang, model) => {
  const at = (time) => instant(time, model.virtual), lines = [`${gang.gang}: ${gang.state}`];
  if (gang.came !== null) lines.push(`came ${at(gang.came)}, ${gang.started === null || gang.started === undefined ? "has waited" : "waited"} ${duration(gang.waits)}`);
  if (gang.started !== null && gang.started !== undefined)
    lines.push(`started ${at(gang.started)}, ${gang.ended === null ? "has run" : "ran"} ${duration((gang.ended ?? model.asOf) - gang.started)}`);
  if (gang.expected) lines.push(`expected to start ${at(gang.expected)}`);
  if ((gang.claimed || []).some(([, to]) => to === null)) lines.push("room is reserved or held for it");
  return lines.join("\n");
};

// `view` is kept by the caller, so that an update of the data leaves zoom and place as they are.
export const timelineView = (model, { view, open, width, print = false }) => {
  if (!model.gangs.length) return element("p", { class: "empty" }, "No gang yet: the timeline begins with the first one.");
  const rows = [...model.gangs].sort((one, other) => (one.came ?? 0) - (other.came ?? 0) || (one.gang < other.gang ? -1 : 1));
  const height = Math.min(rows.length * ROW + AXIS + 8, print ? MOST_PRINTED * ROW : Math.max(260, window.innerHeight - 190)), LABELS = labelsOf(width);
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const canvas = element("canvas", { width: Math.round(width * ratio), height: Math.round(height * ratio), tabindex: 0, role: "img", id: "timeline",
    "aria-label": "Timeline of gangs; the table of gangs has the same times" });
  canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
  const whole = spanOf(model.end === undefined ? model : { ...model, asOf: model.end }), tip = element("div", { class: "tip", hidden: true });
  if (view.from === undefined || view.follows) Object.assign(view, whole, { first: view.first || 0, follows: true }); // until it is zoomed or panned
  const last = Math.max(0, rows.length - Math.floor((height - AXIS) / ROW));
  let hovered = -1;
  const redraw = () => { view.first = Math.min(Math.max(0, Math.round(view.first)), last); draw(canvas, model, rows, view, width, { hovered }); };
  const zoom = (factor, at) => {
    const span = Math.min((view.to - view.from) * factor, (whole.to - whole.from) * 1.5);
    view.from = at - (at - view.from) * (span / (view.to - view.from)); view.to = view.from + span; view.follows = false; redraw();
  };
  const pan = (part) => { const by = (view.to - view.from) * part; view.from += by; view.to += by; view.follows = false; redraw(); };
  const timeAt = (event) => view.from + ((event.clientX - canvas.getBoundingClientRect().left - LABELS) / (width - LABELS - 6)) * (view.to - view.from);
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !last) return; // the page scrolls
    event.preventDefault();
    if (event.ctrlKey) zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, timeAt(event));
    else { view.first += Math.sign(event.deltaY) * 3; redraw(); }
  }, { passive: false });
  const rowAt = (event) => {
    const index = Math.floor((event.clientY - canvas.getBoundingClientRect().top - AXIS) / ROW);
    return index >= 0 && rows[index + view.first] ? index + view.first : -1;
  };
  const hover = (event) => {
    const found = event ? rowAt(event) : -1;
    tip.hidden = found < 0;
    if (found >= 0) { tip.textContent = textOf(rows[found], model); placeTip(tip, event); }
    if (found !== hovered) { hovered = found; redraw(); }
  };
  let from = null, moved = 0;
  canvas.addEventListener("pointerdown", (event) => { from = event.clientX; moved = 0; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    if (from === null) { hover(event); return; }
    moved += Math.abs(event.clientX - from);
    if (moved >= 4) { hover(null); pan((from - event.clientX) / (width - LABELS)); }
    from = event.clientX;
  });
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener("pointercancel", () => { from = null; });
  canvas.addEventListener("pointerup", (event) => {
    from = null;
    const index = rowAt(event);
    if (moved < 4 && index >= 0) open(rows[index].gang);
  });
  canvas.addEventListener("keydown", (event) => {
    const acts = { ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1), "+": () => zoom(1 / 1.4, (view.from + view.to) / 2),
      "-": () => zoom(1.4, (view.from + view.to) / 2), ArrowDown: () => { view.first += 1; redraw(); }, ArrowUp: () => { view.first -= 1; redraw(); } };
    if (acts[event.key]) { event.preventDefault(); acts[event.key](); }
  });
  const button = (text, act) => element("button", { type: "button", onclick: act }, text);
  const any = (test) => rows.some(test);
  const tools = element("div", { class: "tools" }, button("Zoom in", () => zoom(1 / 1.6, (view.from + view.to) / 2)),
    button("Zoom out", () => zoom(1.6, (view.from + view.to) / 2)), button("Whole span", () => { Object.assign(view, whole, { follows: true }); redraw(); }),
    element("span", { class: "legend" }, swatch("wait", "waits"), swatch("wait hatched-bar", "waits, room reserved or held"), swatch("run", "runs"),
      any((gang) => gang.ended !== null && gang.ended !== undefined && gang.state !== "Failed") && swatch("past", "ran"), any((gang) => gang.state === "Failed") && swatch("fail", "failed"), swatch("dashed", "expected")));
  if (print) redraw(); else requestAnimationFrame(redraw);
  return element("div", {}, tools, canvas, tip, last && !print ? element("p", { class: "dim" }, matchMedia("(hover: none)").matches ? `${rows.length} gangs; those that do not fit here are in the list of gangs.` : `${rows.length} gangs; the wheel or ↑ ↓ scroll, Ctrl and the wheel zoom.`) : null);
};
