// A saved simulation at one of its instants: nodes, gangs and queues as they were then, and the control that chooses it.
import { element, instant, sum } from "./format.js";
import { waitsOf } from "./gangs.js";

const add = (held, amounts) => { for (const [name, value] of Object.entries(amounts)) held[name] = (held[name] || 0) + value; };

// The instants at which something changed, and the end.
export const changesOf = (model) => {
  const times = new Set([model.asOf]);
  for (const gang of model.gangs) for (const time of [gang.came, gang.started, gang.ended]) if (time !== null && time !== undefined) times.add(time);
  for (const [, , from, to] of model.moments.stays) { times.add(from); if (to !== null) times.add(to); }
  return [...times].filter((time) => time <= model.asOf).sort((one, other) => one - other);
};

const waits = (gang, at) => {
  if (gang.started !== null && gang.started !== undefined && gang.started <= at) return "It waits: its pods are gone, and are placed again later.";
  return gang.sentence.startsWith("It wait") ? gang.sentence.replace(/^It waited/, "It waits") : "It waits, and starts later.";
};

const gangAt = (gang, at, running, nodes) => {
  const reached = (time) => time !== null && time !== undefined && time <= at ? time : null;
  const ended = reached(gang.ended), known = { came: gang.came, started: reached(gang.started), ended, expected: null, setAside: {}, roles: {}, nodes,
    claimed: (gang.claimed || []).filter(([from]) => from <= at).map(([from, to]) => [from, reached(to)]) };
  if (ended !== null || gang.came === null) return { ...gang, ...known, pods: gang.pods };
  const pods = { running, waiting: Math.max(0, sum(gang.pods) - running) };
  if (running) return { ...gang, ...known, pods, state: "Running", cause: "" };
  return { ...gang, ...known, pods, state: "Waiting", sentence: waits(gang, at), cause: gang.state === "Waiting" ? gang.cause : "starts later" };
};

// What the queues used: a queue uses what those below it use.
const queuesAt = (model, gangs, used) => {
  const parents = new Map(model.queues.map((queue) => [queue.queue, queue.parent]));
  const total = new Map(model.queues.map((queue) => [queue.queue, {}]));
  for (const [name, amounts] of used)
    for (let queue = name, seen = new Set(); total.has(queue) && !seen.has(queue); queue = parents.get(queue)) { seen.add(queue); add(total.get(queue), amounts); }
  const count = (queue, state) => gangs.filter((gang) => gang.queue === queue && gang.state === state).length;
  return model.queues.map((queue) => ({ ...queue, used: total.get(queue.queue), running: count(queue.queue, "Running"), waiting: count(queue.queue, "Waiting") }));
};

// `withResource` gives the nodes the amounts of the resource that is shown.
export const modelAt = (model, at, withResource) => {
  const { stays, amounts, since } = model.moments, places = new Map(), running = new Map(), nodesOf = new Map(), used = new Map();
  model.gangs.forEach((gang, index) => { if (gang.came === null || gang.came <= at) places.set(index, places.size); });
  const nodes = model.nodes.map((node) => ({ ...node, held: new Map(), kept: new Map() }));
  for (const [gang, node, from, to, asked, claimed] of stays) {
    if (from > at || (to !== null && to <= at)) continue;
    const place = places.get(gang) ?? -1, held = claimed ? nodes[node].kept : nodes[node].held;
    if (!held.has(place)) held.set(place, {});
    add(held.get(place), amounts[asked]);
    if (claimed || gang < 0) continue;
    running.set(gang, (running.get(gang) || 0) + 1);
    if (!nodesOf.has(gang)) nodesOf.set(gang, {});
    add(nodesOf.get(gang), { [nodes[node].node]: 1 });
    const queue = model.gangs[gang].queue;
    if (!used.has(queue)) used.set(queue, {});
    add(used.get(queue), amounts[asked]);
  }
  const gangs = [...places.keys()].map((index) => gangAt(model.gangs[index], at, running.get(index) || 0, nodesOf.get(index) || {}));
  for (const gang of gangs) gang.waits = waitsOf(gang, at);
  const there = nodes.filter((node, index) => since[index] <= at).map(({ held, kept, ...node }) => ({ ...node, pods: [...held], claimed: [...kept] }));
  return { ...model, asOf: at, end: model.asOf, gangs, nodes: withResource(there, model.resource), queues: queuesAt(model, gangs, used), series: model.series.filter((sample) => sample.t <= at) };
};

// `choose` is called with an instant, or with null for the end.
export const timeControl = (model, choose) => {
  const changes = changesOf(model), first = Math.min(0, changes[0]), end = model.asOf;
  const text = (time) => instant(time, true);
  const range = element("input", { type: "range", id: "time", min: first, max: end, step: "any", "aria-label": "Time" });
  const shown = element("output", { for: "time" });
  let present = end;
  const pick = (time) => choose(time >= end ? null : Math.max(first, time));
  const before = () => pick(changes.filter((time) => time < present).at(-1) ?? first);
  const after = () => pick(changes.find((time) => time > present) ?? end);
  range.addEventListener("input", () => pick(Number(range.value)));
  range.addEventListener("keydown", (event) => {
    const acts = { ArrowLeft: before, ArrowDown: before, ArrowRight: after, ArrowUp: after, Home: () => pick(first), End: () => pick(end) };
    if (acts[event.key]) { event.preventDefault(); acts[event.key](); }
  });
  const bar = element("div", { class: "time", role: "group", "aria-label": "Time of the simulation" },
    element("button", { type: "button", "aria-label": "Change before", title: "Change before (,)", onclick: before }, "‹"), range,
    element("button", { type: "button", "aria-label": "Next change", title: "Next change (.)", onclick: after }, "›"), shown);
  const show = (at) => {
    present = at ?? end;
    range.value = present;
    range.setAttribute("aria-valuetext", text(present));
    shown.textContent = present >= end ? `the end, ${text(end)}` : `${text(present)} of ${text(end)}`;
  };
  show(null);
  return { bar, show, before, after };
};
