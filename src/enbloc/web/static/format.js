// Numbers, times and names as people read them; and the smallest builder of elements.

export const element = (tag, attributes, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
};

export const duration = (seconds) => {
  if (seconds === null || seconds === undefined) return "–";
  const rounded = Math.max(0, Math.round(seconds));
  for (const [unit, size, next, part] of [["d", 86400, "h", 3600], ["h", 3600, "m", 60], ["m", 60, "s", 1]]) {
    if (rounded >= size) {
      const rest = Math.floor((rounded % size) / part);
      return rest ? `${Math.floor(rounded / size)}${unit} ${rest}${next}` : `${Math.floor(rounded / size)}${unit}`;
    }
  }
  return `${rounded}s`;
};

// A point in time: of the clock, or since the start of a simulation.
export const instant = (seconds, virtual) => {
  if (seconds === null || seconds === undefined) return "–";
  if (virtual) return duration(seconds);
  const date = new Date(seconds * 1000);
  const today = new Date().toDateString() === date.toDateString();
  return today ? date.toLocaleTimeString() : date.toLocaleString();
};

// The zone of the times that the page shows: the reader's.
export const zone = () => new Intl.DateTimeFormat(undefined, { timeZoneName: "short" }).formatToParts().find((part) => part.type === "timeZoneName").value;

const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

// Round instants between two, at most `most`, each with its label: [seconds, text].
export const ticks = (from, to, most, virtual) => {
  const step = STEPS_S.find((one) => (to - from) / one <= most) || Math.ceil((to - from) / most / 604800) * 604800;
  const shift = virtual ? 0 : new Date(from * 1000).getTimezoneOffset() * 60; // round on the reader's clock
  const found = [], options = step < 60 ? { hour: "numeric", minute: "2-digit", second: "2-digit" } : step < 86400 ? { hour: "numeric", minute: "2-digit" } : { month: "short", day: "numeric" };
  for (let at = Math.ceil((from - shift) / step) * step + shift; at <= to && found.length <= most; at += step) {
    const date = new Date(at * 1000);
    const midnight = !virtual && step < 86400 && date.getHours() === 0 && date.getMinutes() === 0 && date.getSeconds() === 0;
    found.push([at, virtual ? duration(at) : midnight ? date.toLocaleDateString(undefined, { month: "short", day: "numeric" }) : step >= 86400 ? date.toLocaleDateString(undefined, options) : date.toLocaleTimeString(undefined, options)]);
  }
  return found;
};

// The next round number above a value, for the upper edge of a chart.
export const roundUp = (value) => {
  const size = 10 ** Math.floor(Math.log10(value));
  return size * [1, 2, 4, 5, 8, 10].find((one) => one * size >= value * 0.999999);
};

// Text beside the pointer that stays inside the window.
export const placeTip = (tip, event) => {
  const { width, height } = tip.getBoundingClientRect();
  const left = event.clientX + 14 + width > window.innerWidth ? event.clientX - width - 14 : event.clientX + 14;
  const top = event.clientY + 14 + height > window.innerHeight ? event.clientY - height - 14 : event.clientY + 14;
  tip.style.left = `${Math.max(4, left)}px`; tip.style.top = `${Math.max(4, top)}px`;
};

const NUMBERS = new Intl.NumberFormat("en", { maximumFractionDigits: 3 }); // one for all: making it is what takes time
const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

export const amount = (resource, value) => {
  if (value === null || value === undefined) return "–";
  if (resource !== "memory" && !resource.endsWith("storage")) return NUMBERS.format(value);
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < BINARY.length - 1) { value /= 1024; unit += 1; }
  return `${Math.round(value * 10) / 10}${BINARY[unit]}`;
};

export const plural = (count, noun) => `${NUMBERS.format(count)} ${noun}${count === 1 ? "" : "s"}`;

export const sum = (counts) => Object.values(counts || {}).reduce((total, one) => total + one, 0);

// A preempted gang waits again.
export const isWaiting = (gang) => gang.state === "Waiting" || gang.state === "Preempted";

// A colour that a name keeps while the page is open. The first names get colours that differ clearly, those after them a
// hash of the name: sixteen colours are about what can be told apart in a legend.
const PALETTE = ["#3f7fc1", "#e08a1e", "#3a9d5d", "#c8503f", "#8a63c4", "#c9a227", "#2aa3a8", "#d0639f",
  "#7d8b2f", "#58b4e0", "#a5683f", "#9bbf3c", "#5b6bd0", "#e58f83", "#6b8e9e", "#b28bd6"];
const given = { gang: new Map(), queue: new Map() }, hues = new Map();
// `names`: those that are shown, the most important first. A name that is gone loses its colour when another needs one.
export const giveColours = (kind, names) => {
  const known = given[kind], wanted = new Set(names.slice(0, PALETTE.length));
  wanted.delete("");
  for (const name of wanted) {
    if (known.has(name)) continue;
    const taken = new Set(known.values()), free = PALETTE.find((colour) => !taken.has(colour)), gone = [...known.keys()].find((other) => !wanted.has(other));
    if (free) known.set(name, free);
    else if (gone !== undefined) { known.set(name, known.get(gone)); known.delete(gone); }
  }
};
export const colourOf = (kind, name, dark) => {
  if (!name) return dark ? "#555b66" : "#b9bec8";
  if (given[kind].has(name)) return given[kind].get(name);
  let hue = hues.get(name);
  if (hue === undefined) {
    let hash = 2166136261;
    for (const character of name) hash = Math.imul(hash ^ character.codePointAt(0), 16777619) >>> 0;
    hue = [((hash % 1009) * 137.508 % 360).toFixed(0), (hash >>> 12) % 3];
    hues.set(name, hue);
  }
  return `hsl(${hue[0]} ${dark ? `55% ${45 + hue[1] * 10}%` : `60% ${38 + hue[1] * 10}%`})`;
};

// What a colour or pattern means: `look` is a colour, or the name of a class of style.css.
export const swatch = (look, ...text) => {
  const box = element("i", { class: look.startsWith("#") || look.startsWith("hsl") ? null : look });
  if (!box.className) box.style.background = look;
  return element("span", {}, box, text);
};

export const isDark = () => getComputedStyle(document.documentElement).getPropertyValue("--dark").trim() === "1";
