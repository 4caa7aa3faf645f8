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

const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

export const amount = (resource, value) => {
  if (value === null || value === undefined) return "–";
  if (resource !== "memory" && !resource.endsWith("storage")) return String(Math.round(value * 1000) / 1000);
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < BINARY.length - 1) { value /= 1024; unit += 1; }
  return `${Math.round(value * 10) / 10}${BINARY[unit]}`;
};

export const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

export const sum = (counts) => Object.values(counts || {}).reduce((total, one) => total + one, 0);

// A preempted gang waits again.
export const isWaiting = (gang) => gang.state === "Waiting" || gang.state === "Preempted";

// A colour that a name keeps: hue and lightness are a hash of the name.
const hues = new Map();
export const colourOf = (name, dark) => {
  if (!name) return dark ? "#555b66" : "#b9bec8";
  let hue = hues.get(name);
  if (hue === undefined) {
    let hash = 2166136261;
    for (const character of name) hash = Math.imul(hash ^ character.codePointAt(0), 16777619) >>> 0;
    hue = [((hash % 1009) * 137.508 % 360).toFixed(0), (hash >>> 12) % 3];
    hues.set(name, hue);
  }
  return `hsl(${hue[0]} ${dark ? `55% ${45 + hue[1] * 10}%` : `60% ${38 + hue[1] * 10}%`})`;
};

export const isDark = () => getComputedStyle(document.documentElement).getPropertyValue("--dark").trim() === "1";
