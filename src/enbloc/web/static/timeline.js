// The timeline (Gantt): a row a gang; it waits, runs, and is expected to start. Wheel zooms, dragging pans, arrow keys do both.
import { duration, element, instant, isDark } from "./format.js";

const ROW = 18, LABELS = 190, AXIS = 22;

export const spanOf = (model) => {
  const times = model.gangs.flatMap((gang) => [gang.came, gang.started, gang.ended, gang.expected]).filter((time) => time !== null && time !== undefined);
  const from = Math.min(model.asOf, ...times), to = Math.max(model.asOf, ...times);
  return { from, to: to > from ? to + (to - from) * 0.02 : from + 1 };
};

const colours = () => isDark()
  ? { wait: "#b98a2e", run: "#4f90d0", fail: "#d5695f", past: "#3d4a5c", text: "#e6e9ee", dim: "#a2aab6", line: "#323944" }
  : { wait: "#e0a93b", run: "#3d7dbb", fail: "#c9554b", past: "#9db6d0", text: "#1d2127", dim: "#5c6470", line: "#d8dce2" };

const draw = (canvas, model, rows, view, width, first) => {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const shown = Math.ceil(canvas.clientHeight / ROW) + 1;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, canvas.clientHeight);
  context.font = "11px system-ui, sans-serif";
  const colour = colours();
  const x = (time) => LABELS + ((time - view.from) / (view.to - view.from)) * (width - LABELS - 6);
  const bar = (from, to, y, fill, dashed) => {
    const left = Math.max(LABELS, x(from)), right = Math.min(width, x(to));
    if (right <= LABELS || left >= width || to < from) return;
    if (dashed) { context.strokeStyle = fill; context.setLineDash([3, 3]); context.strokeRect(left + 0.5, y + 0.5, Math.max(right - left - 1, 2), ROW - 6); context.setLineDash([]); }
    else { context.fillStyle = fill; context.fillRect(left, y, Math.max(right - left, 1), ROW - 5); }
  };
  const hatched = (from, to, y) => { // room was reserved or held for it
    const left = Math.max(LABELS, x(from)), right = Math.min(width, x(to));
    if (right <= left) return;
    context.save();
    context.beginPath(); context.rect(left, y, right - left, ROW - 5); context.clip();
    context.strokeStyle = colour.run; context.lineWidth = 2; context.beginPath();
    for (let step = left - ROW; step < right; step += 6) { context.moveTo(step, y + ROW); context.lineTo(step + ROW, y); }
    context.stroke(); context.restore();
  };
  rows.slice(first, first + shown).forEach((gang, index) => {
    const y = AXIS + index * ROW + 2;
    context.fillStyle = colour.text;
    context.textAlign = "right";
    context.fillText(gang.gang.length > 32 ? `…${gang.gang.slice(-31)}` : gang.gang, LABELS - 8, y + 10);
    if (gang.came !== null) bar(gang.came, gang.started ?? model.asOf, y, colour.wait);
    for (const [from, to] of gang.claimed || []) hatched(from, to ?? model.asOf, y);
    if (gang.started !== null && gang.started !== undefined)
      bar(gang.started, gang.ended ?? model.asOf, y, gang.state === "Failed" ? colour.fail : gang.ended === null ? colour.run : colour.past);
    if (gang.expected) bar(gang.expected, gang.expected + (gang.runTime || (view.to - view.from) * 0.05), y, colour.run, true);
  });
  context.strokeStyle = colour.line; context.fillStyle = colour.dim; context.textAlign = "center";
  for (let mark = 0; mark <= 5; mark += 1) {
    const time = view.from + (mark / 5) * (view.to - view.from);
    context.fillText(model.virtual ? duration(time) : instant(time, false), Math.min(Math.max(x(time), LABELS + 30), width - 34), 12);
  }
  context.beginPath(); context.moveTo(x(model.asOf), AXIS); context.lineTo(x(model.asOf), canvas.clientHeight); context.stroke();
};

// `view` is kept by the caller, so that an update of the data leaves zoom and place as they are.
export const timelineView = (model, { view, open, width }) => {
  const rows = [...model.gangs].sort((one, other) => (one.came ?? 0) - (other.came ?? 0) || (one.gang < other.gang ? -1 : 1));
  const height = Math.min(rows.length * ROW + AXIS + 8, Math.max(260, window.innerHeight - 230));
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const canvas = element("canvas", { width: Math.round(width * ratio), height: Math.round(height * ratio), tabindex: 0, role: "img",
    "aria-label": "Timeline of gangs; the table of gangs has the same times" });
  canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
  const whole = spanOf(model);
  if (view.from === undefined) Object.assign(view, whole, { first: 0 });
  const last = Math.max(0, rows.length - Math.floor((height - AXIS) / ROW));
  const redraw = () => { view.first = Math.min(Math.max(0, Math.round(view.first)), last); draw(canvas, model, rows, view, width, view.first); };
  const zoom = (factor, at) => {
    const span = Math.min((view.to - view.from) * factor, (whole.to - whole.from) * 1.5);
    view.from = at - (at - view.from) * (span / (view.to - view.from)); view.to = view.from + span; redraw();
  };
  const pan = (part) => { const by = (view.to - view.from) * part; view.from += by; view.to += by; redraw(); };
  const timeAt = (event) => view.from + ((event.clientX - canvas.getBoundingClientRect().left - LABELS) / (width - LABELS - 6)) * (view.to - view.from);
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (event.ctrlKey || !last) zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, timeAt(event));
    else { view.first += Math.sign(event.deltaY) * 3; redraw(); }
  }, { passive: false });
  let from = null, moved = 0;
  canvas.addEventListener("pointerdown", (event) => { from = event.clientX; moved = 0; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    if (from === null) return;
    moved += Math.abs(event.clientX - from);
    pan((from - event.clientX) / (width - LABELS)); from = event.clientX;
  });
  canvas.addEventListener("pointerup", (event) => {
    from = null;
    const index = Math.floor((event.clientY - canvas.getBoundingClientRect().top - AXIS) / ROW) + view.first;
    if (moved < 4 && rows[index] && index >= 0) open(rows[index].gang);
  });
  canvas.addEventListener("keydown", (event) => {
    const acts = { ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1), "+": () => zoom(1 / 1.4, (view.from + view.to) / 2),
      "-": () => zoom(1.4, (view.from + view.to) / 2), ArrowDown: () => { view.first += 1; redraw(); }, ArrowUp: () => { view.first -= 1; redraw(); } };
    if (acts[event.key]) { event.preventDefault(); acts[event.key](); }
  });
  const button = (text, act) => element("button", { type: "button", onclick: act }, text);
  const tools = element("div", { class: "tools" }, button("Zoom in", () => zoom(1 / 1.6, (view.from + view.to) / 2)),
    button("Zoom out", () => zoom(1.6, (view.from + view.to) / 2)), button("Whole span", () => { Object.assign(view, whole); redraw(); }),
    element("span", { class: "legend" }, [["--wait-fill", "waits"], ["--run-fill", "runs"]].map(([name, text]) => {
      const box = element("i", {}); box.style.background = `var(${name})`; return element("span", {}, box, text);
    }), element("span", {}, "hatched: room is reserved or held"), element("span", {}, "dashed: expected")));
  requestAnimationFrame(redraw);
  return element("div", {}, tools, canvas);
};
