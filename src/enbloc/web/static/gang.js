// A gang's page: the sentence, what would let it start, when, who is ahead and why, who holds what it waits for, where a
// part of it would fit, its roles and pods, its events and its story.
import { amount, duration, element, instant, isWaiting, plural } from "./format.js";
import { mapCanvas } from "./map.js";

const MOST = 20;

const section = (title, ...content) => content.flat().filter(Boolean).length ? element("section", {}, element("h2", {}, title), content) : null;

const list = (title, items, note) => items && items.length
  ? section(title, note && element("p", { class: "dim" }, note), element("ul", {}, items.map((item) => element("li", {}, item)))) : null;

const table = (title, heads, rows) => rows && rows.length ? section(title, element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title },
  element("table", {}, element("thead", {}, element("tr", {}, heads.map((head) => element("th", { scope: "col" }, head)))),
    element("tbody", {}, rows.map((row) => element("tr", {}, row.map((cell) => element("td", {}, cell ?? "")))))))) : null;

const countsText = (counts) => Object.entries(counts || {}).map(([name, count]) => `${count} ${name}`).join(", ");
const amountsText = (amounts) => Object.entries(amounts || {}).map(([name, amount]) => `${amount} ${name}`).join(", ");

const card = (title, value) => element("div", { class: "card" }, element("span", { class: "dim" }, title), element("b", {}, value));

// A time of the answer: seconds of a simulation, or an instant of the clock as text.
const secondsOf = (value) => typeof value === "string" ? Date.parse(value) / 1000 : value;

const when = (value, model) => {
  const seconds = secondsOf(value);
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "";
  if (model.virtual) return `starts at ${duration(seconds)}`;
  return seconds - model.asOf < 1.5 ? "starts at once" : `starts in ${duration(seconds - model.asOf)}`;
};

const remedies = (model, detail, gang) => {
  if (!isWaiting(gang)) return null;
  const title = "What would let it start";
  if (detail?.trying) return section(title, element("p", { class: "dim", role: "status" }, "Changes are being tried on a copy of the cluster …"));
  if (detail?.failed) return section(title, element("p", { class: "dim" }, detail.failed));
  const found = detail?.remedies;
  if (!found) return null;
  if (!found.length) return section(title, element("p", {}, "No change that was tried lets it start."));
  return list(title, found.map((one) => [element("b", {}, one.change), " ", element("span", { class: "dim" }, when(one.starts_at, model))]),
    "Each was tried on a copy of the cluster: with it, the gang starts.");
};

// Why one gang of the same queue is scheduled before another (G8).
const whyAhead = (other, gang) => {
  if (!other) return "";
  if (other.priority !== gang.priority) return `priority ${other.priority}, this one has ${gang.priority}`;
  if (other.came !== null && gang.came !== null && other.came !== gang.came) return gang.came - other.came < 1 ? "came just before it" : `came ${duration(gang.came - other.came)} before it`;
  return "the same priority and age; names decide";
};

const ahead = (model, detail, gang, link) => {
  const byName = new Map(model.gangs.map((one) => [one.gang, one]));
  const names = (detail?.ahead || []).map((one) => typeof one === "string" ? one : one.gang);
  return table(names.length > MOST ? `Ahead in its queue: ${names.length}, the first ${MOST}` : "Ahead in its queue", ["Gang", "Why it is ahead", "State"],
    names.slice(0, MOST).map((name) => [element("a", { href: link(name) }, name), whyAhead(byName.get(name), gang), byName.get(name)?.state]));
};

// Without an explanation (a saved simulation): the gangs that use most of the resource which is scarce.
const holders = (model, gang, resource) => {
  const held = new Map();
  for (const node of model.nodes) for (const [index, used] of node.parts) if (index >= 0 && used) held.set(index, (held.get(index) || 0) + used);
  return [...held].filter(([index]) => model.gangs[index] !== gang).sort((one, other) => other[1] - one[1]).slice(0, 10)
    .map(([index, used]) => ({ kind: "gang", name: model.gangs[index].gang, what: `uses ${amount(resource, used)} ${resource}` }));
};

const obstacles = (model, gang, detail, link, resource) => {
  const known = new Set(model.gangs.map((one) => one.gang));
  const found = detail?.in_the_way || (isWaiting(gang) && !model.live ? holders(model, gang, resource) : []);
  return table("Who holds what it waits for", ["What", "Name", "How"], found.map((one) => [
    one.kind, one.kind === "gang" && known.has(one.name) ? element("a", { href: link(one.name) }, one.name) : one.name, one.what]));
};

const rejectedText = (groups) => (groups || []).map((group) => {
  const why = Object.entries(group.rejected).map(([reason, count]) => `${count} ${reason}`).join(", ");
  const fit = group.fit ? `${plural(group.fit, "pod")} would fit` : "";
  return `${plural(group.nodes, "node")} like ${group.like}: ${[fit, why].filter(Boolean).join(", ") || "nothing fits"}; most free on one: ${amountsText(group.mostFree) || "everything"}`;
});

const numbers = (detail) => {
  const figures = detail?.numbers;
  if (!figures?.roles) return null;
  const queues = (figures.queues || []).filter((queue) => Object.keys(queue.capability).length);
  const nodes = figures.nodes;
  return [
    table("Numbers", ["Role", "Minimum", "Exist", "Wait", "Each requests", "Nodes"], Object.entries(figures.roles).map(([role, one]) => [role, String(one.minimum), String(one.exist),
      String(one.waiting), amountsText(one.requests), element("span", {}, rejectedText(one.nodes).map((text) => element("div", {}, text)))])),
    nodes && element("p", { class: "dim" }, `${plural(nodes.ready, "node")} ready`, nodes.cordoned ? `, ${nodes.cordoned} cordoned` : "", nodes.notReady ? `, ${nodes.notReady} not ready` : "", "."),
    queues.map((queue) => element("p", { class: "dim" }, `Queue ${queue.queue}: ${amountsText(queue.used) || "nothing"} used of ${amountsText(queue.capability)}.`)),
  ];
};

// Where its pods are or have claims; of one that waits, where a part of it would fit.
const places = (model, detail, gang, { open, resource, width }) => {
  const fit = detail?.numbers?.partialFit;
  const planned = new Map();
  let count = 0;
  for (const nodes of Object.values(fit || {})) for (const [node, pods] of Object.entries(nodes)) { planned.set(node, (planned.get(node) || 0) + pods); count += pods; }
  const nodes = new Set([...Object.keys(gang.nodes || {}), ...Object.keys(gang.setAside || {}), ...planned.keys()]);
  if (!nodes.size && !isWaiting(gang)) return null;
  const lacking = gang.minimum - (gang.pods.running || 0) - (gang.pods.starting || 0);
  const note = planned.size ? `Its best partial fit: ${count} of ${plural(Math.max(lacking, count), "pod")} would fit now, on ${plural(planned.size, "node")} (outlined). It starts when all of its minimum fit.`
    : isWaiting(gang) && detail?.numbers?.roles ? "No pod of it would fit on any node now." : "";
  return section(planned.size || isWaiting(gang) ? "Where it would fit" : "Where", note && element("p", { class: "dim" }, note),
    mapCanvas(model, { resource, by: "gang", marked: nodes.size ? nodes : null, planned, open, width }));
};

// `detail`: what /api/gang and /api/explain answer, or undefined while it is fetched.
export const gangView = (model, name, detail, { link, open, resource, width }) => {
  const gang = model.gangs.find((one) => one.gang === name);
  if (!gang) return element("div", {}, element("h2", {}, name), element("p", {}, "There is no such gang. It may have been deleted."), element("a", { href: "#/gangs" }, "All gangs"));
  const at = (seconds) => instant(seconds, model.virtual);
  const expected = gang.expected ?? secondsOf(detail?.expected_start);
  return element("article", {},
    element("h2", {}, name, " ", element("span", { class: gang.state }, gang.state)),
    element("p", { class: "sentence" }, detail?.sentence || gang.sentence),
    element("div", { class: "cards" }, card("Queue", gang.queue || "–"), card("Priority", String(gang.priority)), card("Minimum", plural(gang.minimum, "pod")), card("Came", at(gang.came)),
      gang.started !== null && gang.started !== undefined ? card("Started", at(gang.started)) : card("Expected start", expected ? at(expected) : "unknown"),
      gang.ended !== null && gang.ended !== undefined && card("Ended", at(gang.ended)), card("Waited", duration(gang.waits))),
    isWaiting(gang) && detail?.assumption ? element("p", { class: "dim" }, `Its expected start is ${detail.assumption.startsWith("unknown") ? "" : "known: "}${detail.assumption}.`) : null,
    remedies(model, detail, gang), obstacles(model, gang, detail, link, resource), ahead(model, detail, gang, link), numbers(detail),
    places(model, detail, gang, { open, resource, width }),
    table("Roles", ["Role", "Minimum", "Pods"], Object.entries(gang.roles || {}).map(([role, counts]) => [role || "–", String(gang.minima?.[role] ?? "–"), countsText(counts)])),
    table("Pods", ["Pod", "Role", "State", "Node", "Message"], (detail?.pods || []).map((pod) => [pod.name, pod.role, pod.state, pod.node, pod.message])),
    table("Story", ["When", "Object", "What", "Message"], (detail?.story || []).map((one) => [at(secondsOf(one.at)), one.about, one.what, one.message])),
    detail?.story?.length ? null : table("Events", ["When", "Object", "What", "Message"], (detail?.events || []).map((event) => [at(event.t), event.object, event.reason, event.message])),
    detail?.story?.length ? element("details", {}, element("summary", {}, "All events"), table("Events", ["When", "Object", "What", "Message"], (detail?.events || []).map((event) => [at(event.t), event.object, event.reason, event.message]))) : null);
};
