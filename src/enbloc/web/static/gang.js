// A gang's page: the sentence, what would help, when it starts, its pods, what is ahead of it, its events.
import { duration, element, instant, plural } from "./format.js";
import { mapCanvas } from "./map.js";

const list = (title, items) => items && items.length ? [element("h2", {}, title), element("ul", {}, items.map((item) => element("li", {}, item)))] : [];

const table = (title, heads, rows) => rows && rows.length ? [element("h2", {}, title), element("div", { class: "scroll" }, element("table", {},
  element("thead", {}, element("tr", {}, heads.map((head) => element("th", { scope: "col" }, head)))),
  element("tbody", {}, rows.map((row) => element("tr", {}, row.map((cell) => element("td", {}, cell ?? "")))))))] : [];

const remedyText = (remedy, virtual) => {
  if (typeof remedy === "string") return remedy;
  return remedy.starts_at === null || remedy.starts_at === undefined ? remedy.change : `${remedy.change} (starts at ${virtual ? duration(remedy.starts_at) : remedy.starts_at})`;
};

const countsText = (counts) => Object.entries(counts || {}).map(([name, count]) => `${count} ${name}`).join(", ");

const card = (title, value) => element("div", { class: "card" }, element("span", { class: "dim" }, title), element("b", {}, value));

// `detail`: what /api/gang answers, or null while it is fetched.
export const gangView = (model, name, detail, { link, open, resource, width }) => {
  const gang = model.gangs.find((one) => one.gang === name);
  if (!gang) return element("div", {}, element("h2", {}, name), element("p", {}, "There is no such gang. It may have been deleted."), element("a", { href: "#/gangs" }, "All gangs"));
  const at = (seconds) => instant(seconds, model.virtual);
  const expected = gang.expected ? at(gang.expected) : detail?.assumption ? detail.assumption : "–";
  const nodes = new Set([...Object.keys(gang.nodes || {}), ...Object.keys(gang.setAside || {})]);
  return element("div", {},
    element("h2", {}, name, " ", element("span", { class: gang.state }, gang.state)),
    element("p", { class: "sentence" }, detail?.sentence || gang.sentence),
    element("div", { class: "cards" }, card("Queue", gang.queue || "–"), card("Priority", String(gang.priority)), card("Minimum", plural(gang.minimum, "pod")), card("Came", at(gang.came)),
      gang.started !== null && gang.started !== undefined ? card("Started", at(gang.started)) : card("Expected start", expected), gang.ended !== null && gang.ended !== undefined && card("Ended", at(gang.ended)),
      card("Waited", duration(gang.waits))),
    list("What would let it start", (detail?.remedies || []).map((remedy) => remedyText(remedy, model.virtual))),
    list("In the way", (detail?.in_the_way || []).map((one) => typeof one === "string" ? one : [one.kind, one.name, one.message || one.why].filter(Boolean).join(" "))),
    list("Ahead in its queue", (detail?.ahead || []).slice(0, 20).map((one) => { const ahead = typeof one === "string" ? one : one.gang; return element("a", { href: link(ahead) }, ahead); })),
    nodes.size ? [element("h2", {}, "Where"), mapCanvas(model, { resource, by: "gang", marked: nodes, open, width })] : [],
    table("Roles", ["Role", "Minimum", "Pods"], Object.entries(gang.roles || {}).map(([role, counts]) => [role || "–", String(gang.minima?.[role] ?? "–"), countsText(counts)])),
    table("Pods", ["Pod", "Role", "State", "Node", "Message"], (detail?.pods || []).map((pod) => [pod.name, pod.role, pod.state, pod.node, pod.message])),
    table("Events", ["When", "Object", "Reason", "Message"], (detail?.events || []).map((event) => [at(event.t), event.object, event.reason, event.message])),
    list("Story", detail?.story || []));
};
