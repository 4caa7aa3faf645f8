// The cluster map: a cell a node, or a square a GPU, coloured by gang or queue; reserved and held room is hatched.
import { amount, colourOf, element, isDark, placeTip, plural, swatch } from "./format.js";

const MOST_SLOTS = 16; // a node with more of the resource is one cell that fills up
const SIDE = 18; // between domains
const label = (domains) => domains > 40 ? 64 : 110; // pixels for the name of a domain
const HEAD = 18, FOOT = 10, NAME = 14;
const MOST_NAMED = 64; // nodes, beyond which their names would only be noise
const SQUARES = [28, 24, 20, 16, 13, 11, 9, 7, 6, 5, 4, 3], CELLS = [64, 52, 44, 34, 26, 20, 16, 12, 9, 7, 5];

export const domainsOf = (nodes) => {
  const domains = new Map();
  for (const node of nodes) {
    if (!domains.has(node.domain)) domains.set(node.domain, []);
    domains.get(node.domain).push(node);
  }
  return [...domains].sort(([one], [other]) => one === other ? 0 : !one ? 1 : !other ? -1 : one.localeCompare(other, "en", { numeric: true }));
};

const slotsOf = (node, resource) => {
  const capacity = node.capacity[resource] || 0;
  return Number.isInteger(capacity) && capacity > 0 && capacity <= MOST_SLOTS ? capacity : 0;
};

// The largest size at which the whole map is seen without scrolling, and how many nodes of a domain stand side by side:
// domains are blocks, so that a screen holds as many of them as it can.
const fit = (domains, squares, columns, rows, width, height, named) => {
  const largest = Math.max(...domains.map((one) => one[1].length)), head = domains.some((one) => one[0]) ? HEAD : 0;
  let best = null;
  for (const size of squares ? SQUARES : CELLS) {
    const gap = size > 7 ? 4 : size > 4 ? 3 : 2, cellWidth = columns * size + gap, cellHeight = rows * size + gap + (named && columns * size >= 40 ? NAME : 0);
    best = null;
    for (let blocks = 1; blocks <= domains.length; blocks += 1) {
      const room = (width - (blocks - 1) * SIDE) / blocks, across = Math.min(largest, Math.floor(room / cellWidth));
      if (across < 1 || (blocks > 1 && room < label(domains.length))) break;
      const tall = Math.ceil(domains.length / blocks) * (head + Math.ceil(largest / across) * cellHeight + FOOT);
      if (!best || tall < best.tall) best = { size, gap, cellWidth, cellHeight, across, tall };
    }
    if (best && best.tall <= height) return best;
  }
  return best || { size: 3, gap: 2, cellWidth: columns * 3 + 2, cellHeight: rows * 3 + 2, across: 1 };
};

const layout = (nodes, resource, width, height) => {
  const most = nodes.reduce((found, node) => Math.max(found, slotsOf(node, resource)), 0);
  const columns = most ? Math.min(most, 4) : 1, rows = most ? Math.ceil(most / columns) : 1;
  const domains = domainsOf(nodes), named = nodes.length <= MOST_NAMED;
  const { size, gap, cellWidth, cellHeight, across } = fit(domains, most > 0, columns, rows, width - 4, height, named);
  const name = cellHeight - rows * size - gap; // pixels for a node's name
  const cells = [], labels = [];
  let left = 0, top = 0, tallest = 0;
  for (const [domain, members] of domains) {
    const wide = Math.max(Math.min(members.length, across) * cellWidth, domain ? label(domains.length) : 0), head = domain ? HEAD : 0;
    if (left && left + wide > width - 4) { left = 0; top += tallest; tallest = 0; }
    if (domain) labels.push([domain, members.length, left + 2, top + 12, wide]);
    members.forEach((node, index) => cells.push({
      node, columns, size, name, x: left + 2 + (index % across) * cellWidth, y: top + head + name + Math.floor(index / across) * cellHeight,
      width: cellWidth - gap, height: rows * size,
    }));
    tallest = Math.max(tallest, head + Math.ceil(members.length / across) * cellHeight + FOOT);
    left += wide + SIDE;
  }
  return { cells, labels, height: top + tallest + 2 };
};

const hatch = (context, x, y, width, height, colour) => {
  context.save();
  context.beginPath(); context.rect(x, y, width, height); context.clip();
  context.strokeStyle = colour; context.lineWidth = 1.2;
  context.beginPath();
  for (let step = -height; step < width; step += 4) { context.moveTo(x + step, y + height); context.lineTo(x + step + height, y); }
  context.stroke(); context.restore();
};

// The nodes with the amounts of one resource: parts are [gang, amount], claims [gang, amount, pods].
export const withResource = (nodes, resource) => nodes.map((node) => ({ ...node,
  parts: node.pods.map(([gang, held]) => [gang, held[resource] || 0]), claims: node.claimed.map(([gang, held, pods]) => [gang, held[resource] || 0, pods || 0]) }));

// What is on a node, from the first slot on: [gang's index, amount, whether it is only claimed].
const partsOf = (node) => [...node.parts.map(([gang, used]) => [gang, used, false]), ...node.claims.map(([gang, used]) => [gang, used, true])];

// A dashed outline on nodes where pods would fit.
const outline = (context, cell, dark) => {
  context.globalAlpha = 1;
  context.strokeStyle = dark ? "#6fce8a" : "#17692f"; context.lineWidth = 2; context.setLineDash([4, 2]);
  context.strokeRect(cell.x - 1, cell.y - 1, cell.width + 1, cell.height + 1);
  context.setLineDash([]);
};

// Rectangles by colour, so that tens of thousands of them change the colour of the canvas a few hundred times.
class Painter {
  constructor(context) { this.context = context; this.fills = new Map(); this.hatches = []; }

  fill(colour, faint, x, y, width, height) {
    const key = faint ? `faint ${colour}` : colour;
    let list = this.fills.get(key);
    if (!list) this.fills.set(key, list = []);
    list.push(x, y, width, height);
  }

  hatch(colour, faint, ...box) { this.hatches.push([colour, faint, box]); }

  paint() {
    for (const [key, list] of this.fills) {
      const faint = key.startsWith("faint ");
      this.context.globalAlpha = faint ? 0.25 : 1; this.context.fillStyle = faint ? key.slice(6) : key;
      for (let at = 0; at < list.length; at += 4) this.context.fillRect(list[at], list[at + 1], list[at + 2], list[at + 3]);
    }
    for (const [colour, faint, box] of this.hatches) { this.context.globalAlpha = faint ? 0.25 : 1; hatch(this.context, ...box, colour); }
    this.context.globalAlpha = 1;
  }
}

const paintCell = (painter, cell, resource, colour, faint, own, dark) => {
  const others = (gang) => faint || (own !== null && gang !== own);
  const { node, x, y, width, height, columns, size } = cell;
  const slots = slotsOf(node, resource);
  const free = node.status === "Ready" ? (dark ? "#272d36" : "#e6eaf0") : dark ? "#5a2a2a" : "#f0c9c6";
  if (!slots) {
    const capacity = node.capacity[resource] || 0;
    painter.fill(free, faint, x, y, width, height);
    let bottom = y + height;
    for (const [gang, used, claimed] of partsOf(node)) {
      const part = capacity ? Math.min(bottom - y, (used / capacity) * height) : 0;
      bottom -= part;
      if (part) painter[claimed ? "hatch" : "fill"](colour(gang), others(gang), x, bottom, width, part);
    }
    return;
  }
  const squares = [];
  for (const [gang, used, claimed] of partsOf(node))
    for (let count = 0; count < Math.round(used) && squares.length < slots; count += 1) squares.push(claimed ? [gang] : gang);
  const between = size > 5 ? 1 : 0; // pixels between squares; where there is none, squares of one colour are one box
  for (let slot = 0; slot < slots;) {
    const square = squares[slot], row = Math.floor(slot / columns);
    let next = slot + 1;
    if (!between) while (next < slots && Math.floor(next / columns) === row && squares[next] === square) next += 1;
    const left = x + (slot % columns) * size, top = y + row * size, wide = (next - slot) * size - between, tall = size - between;
    const claimed = Array.isArray(square);
    if (square === undefined || claimed) painter.fill(free, faint, left, top, wide, tall);
    else painter.fill(colour(square), others(square), left, top, wide, tall);
    if (claimed) painter.hatch(colour(square[0]), others(square[0]), left, top, wide, tall);
    slot = next;
  }
};

const textOf = (node, model, resource) => {
  const used = node.parts.reduce((total, part) => total + part[1], 0);
  const lines = [`${node.node}: ${node.status}, ${amount(resource, used)} of ${amount(resource, node.capacity[resource] || 0)} ${resource}`];
  const parts = partsOf(node).filter((part) => part[1]), names = parts.slice(0, 8).map(([gang, part, claimed]) =>
    `${gang >= 0 ? model.gangs[gang].gang : "other pods"}: ${amount(resource, part)}${claimed ? " set aside" : ""}`);
  return [...lines, ...names, ...(parts.length > 8 ? [`and ${parts.length - 8} more`] : [])].join("\n");
};

// The end of a name is what differs.
const cut = (context, text, width) => {
  if (context.measureText(text).width <= width) return text;
  let start = 1;
  while (start < text.length && context.measureText(`…${text.slice(start)}`).width > width) start += 1;
  return `…${text.slice(start)}`;
};

// How free room is spread: much of it on no node is what a gang of large pods waits for.
export const freeText = (model, resource) => {
  let total = 0, nodes = 0, empty = 0, most = 0;
  for (const node of model.nodes) {
    if (node.status !== "Ready") continue;
    const capacity = node.capacity[resource] || 0, held = partsOf(node).reduce((all, part) => all + part[1], 0), free = Math.max(0, capacity - held);
    if (!capacity || free < 1e-9) continue;
    total += free; nodes += 1; most = Math.max(most, free);
    if (held === 0) empty += 1;
  }
  if (!nodes) return `no ${resource} free`;
  return `${amount(resource, total)} ${resource} free on ${plural(nodes, "node")}${empty ? `, ${empty} of them empty` : nodes > 1 ? `, at most ${amount(resource, most)} on one` : ""}`;
};

// What patterns and colours that belong to no gang mean.
export const mapKey = (model, resource) => [swatch("free", freeText(model, resource)), swatch("hatched", "reserved or held"),
  model.nodes.some((node) => node.status !== "Ready") ? swatch("unready", "not ready or cordoned") : null];

// A canvas with tooltips. `marked`: names of nodes that stand out, or null for all; `own`: the index of the gang that stands out on
// them, or null for all; `planned`: how many pods would fit on nodes.
export const mapCanvas = (model, { resource, by, marked = null, own = null, planned = new Map(), open, width, height = 320 }) => {
  const dark = isDark(), colours = new Map(); // asked once: a large map has tens of thousands of squares
  const colour = (gang) => {
    let found = colours.get(gang);
    if (found === undefined) {
      found = colourOf(by, gang < 0 ? "" : by === "queue" ? model.gangs[gang].queue : model.gangs[gang].gang, dark);
      colours.set(gang, found);
    }
    return found;
  };
  const placed = layout(model.nodes, resource, width, height);
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const canvas = element("canvas", { width: Math.round(width * ratio), height: Math.round(placed.height * ratio), role: "img",
    "aria-label": `Map of ${plural(model.nodes.length, "node")}; the table below has the same figures` });
  canvas.style.width = `${width}px`; canvas.style.height = `${placed.height}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.font = "600 11px system-ui, sans-serif"; context.fillStyle = dark ? "#a2aab6" : "#5c6470";
  for (const [domain, count, x, y, wide] of placed.labels) {
    const whole = `${domain} · ${plural(count, "node")}`, room = wide + SIDE - 6;
    context.fillText(context.measureText(whole).width <= room ? whole : cut(context, domain, room), x, y);
  }
  context.font = "10px system-ui, sans-serif";
  const painter = new Painter(context);
  for (const cell of placed.cells) {
    paintCell(painter, cell, resource, colour, marked && !marked.has(cell.node.node), own, dark);
    if (cell.name) context.fillText(cut(context, cell.node.node, cell.width), cell.x, cell.y - 4);
  }
  painter.paint();
  for (const cell of placed.cells) if (planned.has(cell.node.node)) outline(context, cell, dark);
  const tip = element("div", { class: "tip", hidden: true }), frame = element("div", { class: "frame", hidden: true });
  const cellAt = (event) => {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    return placed.cells.find((cell) => x >= cell.x && x < cell.x + cell.width && y >= cell.y && y < cell.y + cell.height);
  };
  const leave = () => { tip.hidden = true; frame.hidden = true; };
  canvas.addEventListener("pointermove", (event) => {
    const cell = cellAt(event);
    if (!cell) { leave(); return; }
    tip.hidden = false; frame.hidden = false;
    const fits = planned.get(cell.node.node);
    tip.textContent = textOf(cell.node, model, resource) + (fits ? `\n${plural(fits, "pod")} of this gang would fit` : "");
    placeTip(tip, event);
    Object.assign(frame.style, { left: `${cell.x - 2}px`, top: `${cell.y - 2}px`, width: `${cell.width + 4}px`, height: `${cell.height + 4}px` });
    canvas.style.cursor = cell.node.parts.some((part) => part[0] >= 0) || cell.node.claims.length ? "pointer" : "default";
  });
  canvas.addEventListener("pointerleave", leave);
  // The gang of the square under the pointer; of a node that fills up, the first one.
  canvas.addEventListener("click", (event) => {
    const cell = cellAt(event);
    if (!cell) return;
    const box = canvas.getBoundingClientRect(), slots = slotsOf(cell.node, resource);
    let at = slots ? Math.floor((event.clientX - box.left - cell.x) / cell.size) + cell.columns * Math.floor((event.clientY - box.top - cell.y) / cell.size) : -1;
    const parts = partsOf(cell.node);
    const under = slots ? parts.find((part) => { at -= Math.round(part[1]); return at < 0; }) : null;
    const chosen = under && under[0] >= 0 ? under : parts.find((part) => part[0] >= 0);
    if (chosen) open(model.gangs[chosen[0]].gang);
  });
  return element("div", { class: "map" }, canvas, frame, tip);
};

const sumOf = (parts, index) => parts.reduce((total, part) => total + part[index], 0);

export const nodesTable = (model, resource, link) => element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Nodes" }, element("table", {},
  element("caption", {}, model.nodes.length > 200 ? `The first 200 of ${plural(model.nodes.length, "node")}` : plural(model.nodes.length, "node")),
  element("thead", {}, element("tr", {}, ["Node", "Domain", "Status"].map((text) => element("th", { scope: "col" }, text)),
    ["Used", "Set aside", "Capacity"].map((text) => element("th", { scope: "col", class: "num" }, text)), element("th", { scope: "col" }, "Gangs"))),
  element("tbody", {}, model.nodes.slice(0, 200).map((node) => element("tr", {},
    element("td", { class: "name" }, node.node), element("td", {}, node.domain || "–"), element("td", {}, node.status),
    element("td", { class: "num" }, amount(resource, sumOf(node.parts, 1))),
    element("td", { class: "num" }, amount(resource, sumOf(node.claims, 1)) + (sumOf(node.claims, 2) ? ` (${plural(sumOf(node.claims, 2), "pod")})` : "")),
    element("td", { class: "num" }, amount(resource, node.capacity[resource] || 0)),
    element("td", {}, partsOf(node).filter(([gang]) => gang >= 0).slice(0, 8).map(([gang], index) => [index ? ", " : "", element("a", { href: link(model.gangs[gang].gang) }, model.gangs[gang].gang)])))))));
