// A gang's page: the sentence, what would let it start, when, who is ahead and why, who holds what it waits for, where a
// part of it would fit, its roles and pods, its events and its story.
import { amount, duration, element, instant, isWaiting, plural, sum } from "./format.js";
import { mapCanvas, withResource } from "./map.js";

const MOST = 20;

const section = (title, ...content) => content.flat().filter(Boolean).length ? element("section", {}, element("h2", {}, title), content) : null;

const list = (title, items, note) => items && items.length
  ? section(title, note && element("p", { class: "dim" }, note), element("ul", { class: "remedies" }, items.map((item) => element("li", {}, item)))) : null;

const MOST_ROWS = 200;

// Columns in which no row has anything are left out.
const table = (title, heads, rows) => {
  if (!rows?.length) return null;
  const used = heads.map((_, index) => index).filter((index) => rows.some((row) => row[index] !== undefined && row[index] !== null && row[index] !== ""));
  const shown = rows.slice(0, MOST_ROWS);
  return section(title, element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title },
    element("table", { class: "stacks fitting" }, element("thead", {}, element("tr", {}, used.map((index) => element("th", { scope: "col" }, heads[index])))),
      element("tbody", {}, shown.map((row) => element("tr", {}, used.map((index) => element("td", { class: heads[index] === "When" ? "when" : null, "data-head": index && heads[index] !== "Message" ? heads[index] : null }, row[index] ?? ""))))))),
    rows.length > shown.length ? element("p", { class: "dim" }, `The first ${MOST_ROWS} of ${rows.length.toLocaleString("en")}.`) : null);
};

const countsText = (counts) => Object.entries(counts || {}).map(([name, count]) => `${count} ${name}`).join(", ");
// Whether a pod says what the gang's sentence says.
const sameAs = (message, sentence) => Boolean(message) && (sentence || "").includes(message.endsWith(".") ? message.slice(0, -1) : message);
const amountsText = (amounts) => Object.entries(amounts || {}).map(([name, amount]) => `${amount} ${name}`).join(", ");

const fact = (title, value) => element("div", {}, element("dt", {}, title), element("dd", {}, value));

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
  // Where no gang holds what it waits for, or while that is not known, the order decides nothing.
  if (model.live && !(detail?.in_the_way || []).some((one) => one.kind === "gang")) return null;
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
  const rows = (holds) => found.filter((one) => (one.kind === "gang") === holds).map((one) => [
    one.kind, holds && known.has(one.name) ? element("a", { href: link(one.name) }, one.name) : one.name, one.what]);
  return [table("What limits it", ["What", "Name", "How"], rows(false)), table("Who holds what it waits for", ["What", "Name", "How"], rows(true))];
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
      String(one.waiting), amountsText(one.requests), one.nodes?.length ? element("span", {}, rejectedText(one.nodes).map((text) => element("div", {}, text))) : ""])),
    nodes && element("p", { class: "dim" }, `${plural(nodes.ready, "node")} ready`, nodes.cordoned ? `, ${nodes.cordoned} cordoned` : "", nodes.notReady ? `, ${nodes.notReady} not ready` : "", "."),
    queues.map((queue) => element("p", { class: "dim" }, `Queue ${queue.queue}: ${amountsText(queue.used) || "nothing"} used of ${amountsText(queue.capability)}.`)),
  ];
};

// The resource that the map shows for a gang: the usual one, unless the gang has and requests none of it.
const resourceOf = (model, own, detail, usual) => {
  const held = model.nodes.flatMap((node) => [...node.pods, ...node.claimed]).filter(([gang]) => gang === own).map((part) => part[1]);
  const names = new Set([...held, ...Object.values(detail?.numbers?.roles || {}).map((role) => role.requests || {})].flatMap((amounts) => Object.keys(amounts).filter((name) => amounts[name])));
  return !names.size || names.has(usual) ? usual : names.has("cpu") ? "cpu" : [...names].sort()[0];
};

// Where its pods are or have claims; of one that waits, where a part of it would fit.
const places = (model, detail, gang, { open, resource, width }) => {
  const fit = detail?.numbers?.partialFit;
  const planned = new Map();
  let count = 0;
  for (const nodes of Object.values(fit || {})) for (const [node, pods] of Object.entries(nodes)) { planned.set(node, (planned.get(node) || 0) + pods); count += pods; }
  const nodes = new Set([...Object.keys(gang.nodes || {}), ...Object.keys(gang.setAside || {}), ...planned.keys()]);
  if (!nodes.size && !isWaiting(gang)) return null;
  if (!nodes.size && !sum(gang.pods)) return section("Where it would fit", element("p", { class: "dim" }, "Its pods do not exist yet."));
  const own = model.gangs.indexOf(gang), shownBy = resourceOf(model, own, detail, resource);
  const shown = shownBy === resource ? model : { ...model, nodes: withResource(model.nodes, shownBy) };
  const lacking = gang.minimum - (gang.pods.running || 0) - (gang.pods.starting || 0);
  const note = planned.size && count >= lacking ? `${count === 1 ? "Its pod" : `Each of its ${plural(count, "pod")}`} has a node with room for it (outlined): what it waits for is not room alone.`
    : planned.size ? `Its best partial fit: ${count} of ${plural(Math.max(lacking, count), "pod")} would fit now, on ${plural(planned.size, "node")} (outlined). It starts when all of its minimum fit.`
    : isWaiting(gang) && fit ? "No pod of it would fit on any node now." : "";
  return section(planned.size || isWaiting(gang) ? "Where it would fit" : "Where", note && element("p", { class: "dim" }, note),
    mapCanvas(shown, { resource: shownBy, by: "gang", marked: nodes.size ? nodes : null, own: nodes.size ? own : null, planned, open, width }));
};

// `detail`: what /api/gang and /api/explain answer, or undefined while it is fetched.
export const gangView = (model, name, detail, { link, open, resource, width }) => {
  const gang = model.gangs.find((one) => one.gang === name);
  if (!gang) return element("div", {}, element("h2", {}, name), element("p", {}, "There is no such gang. It may have been deleted."), element("a", { href: "#/gangs" }, "All gangs"));
  const at = (seconds) => instant(seconds, model.virtual);
  const expected = gang.expected ?? secondsOf(detail?.expected_start);
  const pods = detail?.pods || [], same = pods.length > 1 && pods.every((pod) => sameAs(pod.message, detail.sentence));
  const began = gang.started !== null && gang.started !== undefined, ended = gang.ended !== null && gang.ended !== undefined;
  return element("article", {},
    element("h2", { class: "title" }, name, " ", element("span", { class: `state ${gang.state}` }, gang.state)),
    element("p", { class: "sentence" }, detail?.sentence || gang.sentence),
    element("dl", { class: "facts" }, fact("Queue", element("a", { href: `#/gangs?${new URLSearchParams({ queue: gang.queue })}` }, gang.queue || "–")), fact("Priority", String(gang.priority)), fact("Minimum", plural(gang.minimum, "pod")), fact("Came", at(gang.came)),
      fact(began ? "Waited" : isWaiting(gang) ? "Has waited" : "Waited", duration(gang.waits)),
      began ? fact("Started", at(gang.started)) : isWaiting(gang) && fact("Expected start", expected ? at(expected) : "unknown"),
      ended && fact("Ended", at(gang.ended)), began && fact(ended ? "Ran" : "Has run", duration((gang.ended ?? model.asOf) - gang.started))),
    isWaiting(gang) && detail?.assumption ? element("p", { class: "dim" }, detail.assumption.startsWith("unknown") ? `Its expected start is ${detail.assumption}.` : `Its expected start assumes that ${detail.assumption}.`) : null,
    remedies(model, detail, gang), obstacles(model, gang, detail, link, resource), ahead(model, detail, gang, link), numbers(detail),
    places(model, detail, gang, { open, resource, width }),
    table("Roles", ["Role", "Minimum", "Pods"], Object.entries(gang.roles || {}).filter(([role]) => role).map(([role, counts]) => [role, String(gang.minima?.[role] ?? "–"), countsText(counts)])),
    table("Pods", ["Pod", "Role", "State", "Node", "Message"], pods.map((pod) => [pod.name, pod.role, pod.state, pod.node, same ? "" : sameAs(pod.message, detail.sentence) ? "as above" : pod.message])),
    table("Story", ["When", "Object", "What", "Message"], (detail?.story || []).map((one) => [at(secondsOf(one.at)), one.about, one.what, one.message])),
    detail?.story?.length ? null : table("Events", ["When", "Object", "What", "Message"], (detail?.events || []).map((event) => [at(event.t), event.object, event.reason, event.message])),
    detail?.story?.length ? element("details", {}, element("summary", {}, "All events"), table("Events", ["When", "Object", "What", "Message"], (detail?.events || []).map((event) => [at(event.t), event.object, event.reason, event.message]))) : null);
};
