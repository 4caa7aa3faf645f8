// Lines over time as SVG: use of the resources, gangs that wait. Steps, with a readout under the pointer.
import { element, instant, placeTip, roundUp, ticks } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 150, LEFT = 42, RIGHT = 10, TOP = 8, BOTTOM = 22;

const svgElement = (tag, attributes, text) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
};

const path = (points, x, y) => {
  let drawn = `M${x(points[0][0]).toFixed(1)} ${y(points[0][1]).toFixed(1)}`;
  for (const [t, value] of points) drawn += `H${x(t).toFixed(1)}V${y(value).toFixed(1)}`;
  return drawn;
};

const valueAt = (points, time) => {
  let low = 0, high = points.length - 1;
  while (low < high) { const middle = (low + high + 1) >> 1; if (points[middle][0] <= time) low = middle; else high = middle - 1; }
  return points[low][1];
};

// `lines`: [name, points, colour or ""], points are [seconds, value]. `top`: the value of the upper edge, else one above
// the largest. `kind`: a class of style.css for the colour of a single line.
export const chart = (title, lines, { virtual, top, percent = false, width, kind = "" }) => {
  const shown = lines.filter(([, points]) => points.length);
  const svg = svgElement("svg", { class: `chart ${kind}`, viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": title });
  if (!shown.length) return svg;
  let from = Infinity, to = -Infinity, largest = 0;
  for (const [, points] of shown) {
    from = Math.min(from, points[0][0]); to = Math.max(to, points.at(-1)[0]);
    for (const point of points) largest = Math.max(largest, point[1]);
  }
  if (to <= from) to = from + 1;
  const high = top || (percent ? Math.min(1, roundUp(Math.max(0.01, largest))) : roundUp(Math.max(1, largest)));
  const x = (t) => LEFT + ((t - from) / (to - from)) * (width - LEFT - RIGHT), y = (value) => HEIGHT - BOTTOM - (value / high) * (HEIGHT - BOTTOM - TOP);
  const text = (value) => percent ? `${Math.round(value * 1000) / 10}%` : String(Math.round(value * 10) / 10);
  for (const part of [0, 0.5, 1].filter((one) => percent || Number.isInteger(one * high))) { // there is no half gang
    svg.append(svgElement("line", { x1: LEFT, x2: width - RIGHT, y1: y(part * high), y2: y(part * high) }));
    svg.append(svgElement("text", { x: LEFT - 6, y: y(part * high) + 4, "text-anchor": "end" }, text(part * high)));
  }
  for (const [at, label] of ticks(from, to, Math.max(3, Math.floor((width - LEFT) / 110)), virtual)) {
    const place = x(at), anchor = place < LEFT + 30 ? "start" : place > width - RIGHT - 30 ? "end" : "middle";
    svg.append(svgElement("line", { class: "tick", x1: place, x2: place, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 4 }));
    svg.append(svgElement("text", { x: place, y: HEIGHT - 5, "text-anchor": anchor }, label));
  }
  for (const [, points, colour] of shown) {
    const line = path(points, x, y);
    if (shown.length === 1 && !colour) svg.append(svgElement("path", { class: "area", d: `${line}V${y(0)}H${x(points[0][0]).toFixed(1)}Z` }));
    const drawn = svgElement("path", { d: line });
    if (colour) drawn.style.stroke = colour;
    svg.append(drawn);
  }
  const rule = svgElement("line", { class: "rule", x1: 0, x2: 0, y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
  svg.append(rule);
  const tip = element("div", { class: "tip", hidden: true });
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), place = (event.clientX - box.left) * (width / box.width);
    const time = Math.min(to, Math.max(from, from + ((place - LEFT) / (width - LEFT - RIGHT)) * (to - from)));
    rule.setAttribute("x1", x(time)); rule.setAttribute("x2", x(time)); rule.setAttribute("visibility", "visible");
    tip.hidden = false;
    tip.textContent = [instant(time, virtual), ...shown.map(([name, points]) => `${name ? `${name}: ` : ""}${text(valueAt(points, time))}`)].join("\n");
    placeTip(tip, event);
  });
  svg.addEventListener("pointerleave", () => { tip.hidden = true; rule.setAttribute("visibility", "hidden"); });
  return element("div", {}, svg, tip);
};
