// Lines over time as SVG: use of the resources, gangs that wait.
import { instant } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 960, HEIGHT = 140, LEFT = 44, BOTTOM = 20;

const svgElement = (tag, attributes, text) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
};

const scales = (from, to, high) => ({
  x: (t) => LEFT + ((t - from) / (to - from)) * (WIDTH - LEFT - 8),
  y: (value) => HEIGHT - BOTTOM - (value / high) * (HEIGHT - BOTTOM - 10),
});

const line = (points, x, y, attributes) => {
  let path = `M${x(points[0][0]).toFixed(1)} ${y(points[0][1]).toFixed(1)}`;
  for (const [t, value] of points) path += `H${x(t).toFixed(1)}V${y(value).toFixed(1)}`;
  return svgElement("path", { d: path, ...attributes });
};

// `points`: [seconds, value]; drawn as steps. `top`: the value of the upper edge, else the largest.
export const stepChart = (title, points, { virtual, top, percent = false, waits = false }) => {
  const svg = svgElement("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title });
  if (!points.length) return svg;
  const from = points[0][0], to = points.at(-1)[0] > from ? points.at(-1)[0] : from + 1;
  const high = top || Math.max(1, ...points.map((point) => point[1]));
  const { x, y } = scales(from, to, high);
  for (const part of [0, 0.5, 1]) {
    const label = percent ? `${Math.round(part * high * 100)}%` : String(Math.round(part * high * 10) / 10);
    svg.append(svgElement("line", { x1: LEFT, x2: WIDTH - 8, y1: y(part * high), y2: y(part * high) }));
    svg.append(svgElement("text", { x: LEFT - 6, y: y(part * high) + 4, "text-anchor": "end" }, label));
  }
  for (const [part, anchor] of [[0, "start"], [0.5, "middle"], [1, "end"]])
    svg.append(svgElement("text", { x: x(from + part * (to - from)), y: HEIGHT - 5, "text-anchor": anchor },
      instant(from + part * (to - from), virtual)));
  svg.append(line(points, x, y, { class: waits ? "waits" : "" }));
  return svg;
};

// Several lines with a legend: `lines` are [name, points, colour].
export const linesChart = (title, lines, { virtual }) => {
  const times = lines.flatMap(([, points]) => points.map((point) => point[0]));
  const values = lines.flatMap(([, points]) => points.map((point) => point[1]));
  const svg = stepChart(title, [[Math.min(...times), 0], [Math.max(...times), 0]], { virtual, top: Math.max(0.01, ...values), percent: true });
  svg.lastChild.remove();
  const from = Math.min(...times), to = Math.max(...times) > from ? Math.max(...times) : from + 1, high = Math.max(0.01, ...values);
  const { x, y } = scales(from, to, high);
  for (const [, points, colour] of lines) { const drawn = line(points, x, y, {}); drawn.style.stroke = colour; svg.append(drawn); }
  return svg;
};
