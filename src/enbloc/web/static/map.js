// The cluster map: a cell a node, or a square a GPU, coloured by gang or queue; reserved and held room is hatched.
import { amount, colourOf, element, isDark, plural } from "./format.js";

const MOST_SLOTS = 16; // a node with more of the resource is one cell that fills up
const GAP = 4;
const LABEL = 110; // room for the name of a domain

// As large as the window allows, so that a small cluster is not a stamp: pixels of a slot, or of a node.
const sizeOf = (nodes, squares, columns, rows, width) => {
  for (const size of squares ? [20, 16, 13, 11, 9, 7] : [44, 34, 26, 18, 12, 8]) {
    const across = Math.floor(width / (columns * size + GAP)) || 1;
    if (Math.ceil(nodes / across) * (rows * size + GAP) < 560) return size;
  }
  return squares ? 5 : 6;
};

export const domainsOf = (nodes) => {
  const domains = new Map();
  for (const node of nodes) {
    if (!domains.has(node.domain)) domains.set(node.domain, []);
    domains.get(node.domain).push(node);
  }
  return domains;
};

const slotsOf = (node, resource) => {
  const capacity = node.capacity[resource] || 0;
  return Number.isInteger(capacity) && capacity > 0 && capacity <= MOST_SLOTS ? capacity : 0;
};

const layout = (nodes, resource, width) => {
  const largest = Math.max(0, ...nodes.map((node) => slotsOf(node, resource)));
  const columns = largest ? Math.min(largest, 4) : 1;
  const rows = largest ? Math.ceil(largest / columns) : 1;
  const size = sizeOf(nodes.length, largest > 0, columns, rows, width - 4);
  const cellWidth = columns * size + GAP, cellHeight = rows * size + GAP;
  const across = Math.max(1, Math.floor((width - 4) / cellWidth));
  const cells = [], labels = [];
  let left = 0, top = 0, tallest = 0;
  for (const [domain, members] of domainsOf(nodes)) { // small domains stand side by side
    const wide = Math.max(Math.min(members.length, across) * cellWidth, domain ? LABEL : 0), head = domain ? 17 : 0;
    if (left && left + wide > width - 4) { left = 0; top += tallest; tallest = 0; }
    if (domain) labels.push([domain, members.length, left + 2, top + 12]);
    members.forEach((node, index) => cells.push({
      node, columns, size, x: left + 2 + (index % across) * cellWidth, y: top + head + Math.floor(index / across) * cellHeight,
      width: cellWidth - GAP, height: cellHeight - GAP,
    }));
    tallest = Math.max(tallest, head + Math.ceil(members.length / across) * cellHeight + 8);
    left += wide + 18;
  }
  return { cells, labels, height: top + tallest + 2 };
};

const hatch = (context, x, y, width, height, colour) => {
  context.save();
  context.beginPath(); context.rect(x, y, width, height); context.clip();
  context.strokeStyle = colour; context.lineWidth = 1;
  context.beginPath();
  for (let step = -height; step < width; step += 4) { context.moveTo(x + step, y + height); context.lineTo(x + step + height, y); }
  context.stroke(); context.restore();
};

// What is on a node, from the first slot on: [gang's index, amount, whether it is only claimed].
const partsOf = (node) => [...node.parts.map(([gang, used]) => [gang, used, false]), ...node.claims.map(([gang, used]) => [gang, used, true])];

// A dashed outline on nodes where pods would fit.
const outline = (context, cell, dark) => {
  context.globalAlpha = 1;
  context.strokeStyle = dark ? "#6fce8a" : "#17692f"; context.lineWidth = 2; context.setLineDash([4, 2]);
  context.strokeRect(cell.x - 1, cell.y - 1, cell.width + 1, cell.height + 1);
  context.setLineDash([]);
};

const drawCell = (context, cell, resource, colour, marked, dark) => {
  const { node, x, y, width, height, columns, size } = cell;
  const slots = slotsOf(node, resource);
  const free = node.status === "Ready" ? (dark ? "#272d36" : "#e9ecf1") : dark ? "#5a2a2a" : "#f0c9c6";
  context.globalAlpha = marked && !marked.has(node.node) ? 0.25 : 1;
  context.fillStyle = free;
  if (!slots) {
    const capacity = node.capacity[resource] || 0;
    context.fillRect(x, y, width, height);
    let bottom = y + height;
    for (const [gang, used, claimed] of partsOf(node)) {
      const part = capacity ? Math.min(height, (used / capacity) * height) : 0;
      bottom -= part;
      if (claimed) hatch(context, x, bottom, width, part, colour(gang));
      else { context.fillStyle = colour(gang); context.fillRect(x, bottom, width, part); }
    }
    return;
  }
  const squares = [];
  for (const [gang, used, claimed] of partsOf(node))
    for (let count = 0; count < Math.round(used) && squares.length < slots; count += 1) squares.push([gang, claimed]);
  for (let slot = 0; slot < slots; slot += 1) {
    const left = x + (slot % columns) * size, top = y + Math.floor(slot / columns) * size;
    const square = squares[slot];
    context.fillStyle = square && !square[1] ? colour(square[0]) : free;
    context.fillRect(left, top, size - 1, size - 1);
    if (square && square[1]) hatch(context, left, top, size - 1, size - 1, colour(square[0]));
  }
};

const textOf = (node, model, resource) => {
  const used = node.parts.reduce((total, part) => total + part[1], 0);
  const lines = [`${node.node}: ${node.status}, ${amount(resource, used)} of ${amount(resource, node.capacity[resource] || 0)} ${resource}`];
  const names = partsOf(node).slice(0, 8).map(([gang, part, claimed]) =>
    `${gang >= 0 ? model.gangs[gang].gang : "other pods"}: ${amount(resource, part)}${claimed ? " set aside" : ""}`);
  return [...lines, ...names].join("\n");
};

// A canvas with tooltips. `marked`: names of nodes that stand out, or null for all; `planned`: how many pods would fit on nodes.
export const mapCanvas = (model, { resource, by, marked = null, planned = new Map(), open, width }) => {
  const dark = isDark(), colours = new Map(); // asked once: a large map has tens of thousands of squares
  const colour = (gang) => {
    let found = colours.get(gang);
    if (found === undefined) {
      found = colourOf(gang < 0 ? "" : by === "queue" ? model.gangs[gang].queue : model.gangs[gang].gang, dark);
      colours.set(gang, found);
    }
    return found;
  };
  const placed = layout(model.nodes, resource, width);
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const canvas = element("canvas", { width: Math.round(width * ratio), height: Math.round(placed.height * ratio), role: "img",
    "aria-label": `Map of ${plural(model.nodes.length, "node")}; the table below has the same figures` });
  canvas.style.width = `${width}px`; canvas.style.height = `${placed.height}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.font = "11px system-ui, sans-serif";
  for (const [domain, count, x, y] of placed.labels) {
    context.fillStyle = dark ? "#a2aab6" : "#5c6470";
    context.fillText(`${domain} · ${plural(count, "node")}`, x, y);
  }
  for (const cell of placed.cells) drawCell(context, cell, resource, colour, marked, dark);
  for (const cell of placed.cells) if (planned.has(cell.node.node)) outline(context, cell, dark);
  const tip = element("div", { class: "tip", hidden: true });
  const cellAt = (event) => {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    return placed.cells.find((cell) => x >= cell.x && x < cell.x + cell.width && y >= cell.y && y < cell.y + cell.height);
  };
  canvas.addEventListener("mousemove", (event) => {
    const cell = cellAt(event);
    tip.hidden = !cell;
    if (!cell) return;
    const fits = planned.get(cell.node.node);
    tip.textContent = textOf(cell.node, model, resource) + (fits ? `\n${plural(fits, "pod")} of this gang would fit` : "");
    tip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - 300)}px`; tip.style.top = `${event.clientY + 14}px`;
  });
  canvas.addEventListener("mouseleave", () => { tip.hidden = true; });
  canvas.addEventListener("click", (event) => {
    const first = cellAt(event)?.node.parts.find((part) => part[0] >= 0) || cellAt(event)?.node.claims[0];
    if (first) open(model.gangs[first[0]].gang);
  });
  return element("div", {}, canvas, tip);
};

export const nodesTable = (model, resource, link) => element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Nodes" }, element("table", {},
  element("caption", {}, model.nodes.length > 200 ? `The first 200 of ${plural(model.nodes.length, "node")}` : plural(model.nodes.length, "node")),
  element("thead", {}, element("tr", {}, ["Node", "Domain", "Status"].map((text) => element("th", { scope: "col" }, text)),
    ["Used", "Set aside", "Capacity"].map((text) => element("th", { scope: "col", class: "num" }, text)), element("th", { scope: "col" }, "Gangs"))),
  element("tbody", {}, model.nodes.slice(0, 200).map((node) => element("tr", {},
    element("td", { class: "name" }, node.node), element("td", {}, node.domain || "–"), element("td", {}, node.status),
    [node.parts, node.claims].map((parts) => element("td", { class: "num" }, amount(resource, parts.reduce((total, part) => total + part[1], 0)))),
    element("td", { class: "num" }, amount(resource, node.capacity[resource] || 0)),
    element("td", {}, partsOf(node).filter(([gang]) => gang >= 0).slice(0, 8).map(([gang], index) => [index ? ", " : "", element("a", { href: link(model.gangs[gang].gang) }, model.gangs[gang].gang)])))))));
