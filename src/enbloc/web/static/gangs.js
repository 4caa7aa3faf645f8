// The list of gangs: search, filters, waiting gangs grouped by reason, sorting, pages of a hundred.
import { duration, element, isWaiting, plural, sum } from "./format.js";

const PAGE = 100;
const COLUMNS = [
  ["gang", "Gang", (gang) => gang.gang], ["state", "State", (gang) => gang.state], ["queue", "Queue", (gang) => gang.queue],
  ["priority", "Priority", (gang) => -gang.priority], ["pods", "Pods", (gang) => -sum(gang.pods)],
  ["age", "Came", (gang) => -(gang.came ?? 0)], ["waited", "Waits", (gang) => -gang.waits], ["why", "Why", (gang) => gang.sentence],
];
const NUMBERS = new Set(["priority", "pods", "age", "waited"]);

export const waitsOf = (gang, asOf) => gang.came === null ? 0 : Math.max(0, (gang.started ?? (isWaiting(gang) ? asOf : gang.came)) - gang.came);

export const reasonsOf = (gangs) => {
  const counts = new Map();
  for (const gang of gangs) if (isWaiting(gang)) counts.set(gang.cause, (counts.get(gang.cause) || 0) + 1);
  return [...counts].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1));
};

export const matching = (gangs, wanted) => {
  const words = (wanted.search || "").toLowerCase().split(/\s+/).filter(Boolean);
  return gangs.filter((gang) => (!wanted.namespace || gang.namespace === wanted.namespace) && (!wanted.queue || gang.queue === wanted.queue)
    && (!wanted.state || gang.state === wanted.state) && (!wanted.reason || (gang.cause === wanted.reason && isWaiting(gang)))
    && words.every((word) => `${gang.gang} ${gang.queue} ${gang.dialect} ${gang.sentence}`.toLowerCase().includes(word)));
};

const choice = (label, name, values, wanted, change) => element("select", { "aria-label": label, onchange: (event) => change({ [name]: event.target.value, page: "" }) },
  element("option", { value: "" }, `${label}: all`),
  values.map((value) => element("option", { value, selected: wanted[name] === value }, value)));

const distinct = (values) => [...new Set(values)].filter(Boolean).sort();

const podsText = (gang) => `${(gang.pods.running || 0) + (gang.pods.starting || 0)}/${sum(gang.pods)}`;

export const gangRows = (gangs, model, link) => gangs.map((gang) => element("tr", {},
  element("td", { class: "name" }, element("a", { href: link(gang.gang) }, gang.gang)), element("td", { class: gang.state }, gang.state),
  element("td", { class: "wide" }, gang.queue), element("td", { class: "num wide" }, String(gang.priority)), element("td", { class: "num" }, podsText(gang)),
  element("td", { class: "num wide" }, model.virtual ? duration(gang.came) : `${duration(model.asOf - gang.came)} ago`),
  element("td", { class: "num" }, gang.waits ? duration(gang.waits) : "–"), element("td", { class: "wide" }, gang.sentence)));

export const gangsView = (model, wanted, { change, link }) => {
  const key = (COLUMNS.find((column) => column[0] === wanted.sort) || [])[2];
  const found = matching(model.gangs, wanted);
  if (key) found.sort((one, other) => { const a = key(one), b = key(other); return a < b ? -1 : a > b ? 1 : one.gang < other.gang ? -1 : 1; });
  const pages = Math.max(1, Math.ceil(found.length / PAGE)), page = Math.min(Math.max(1, Number(wanted.page) || 1), pages);
  const search = element("input", { type: "search", id: "search", placeholder: "Search gangs ( / )", "aria-label": "Search gangs", value: wanted.search || "",
    oninput: (event) => change({ search: event.target.value, page: "" }) });
  const tools = element("div", { class: "tools" }, search,
    choice("State", "state", distinct(model.gangs.map((gang) => gang.state)), wanted, change),
    choice("Queue", "queue", distinct(model.gangs.map((gang) => gang.queue)), wanted, change),
    choice("Namespace", "namespace", distinct(model.gangs.map((gang) => gang.namespace)), wanted, change),
    Object.values(wanted).some(Boolean) && element("button", { type: "button", onclick: () => change(null) }, "Clear"));
  const chips = element("ul", { class: "chips", "aria-label": "Waiting gangs by reason" }, reasonsOf(model.gangs).map(([reason, count]) => element("li", {},
    element("button", { type: "button", "aria-pressed": String(wanted.reason === reason), onclick: () => change({ reason: wanted.reason === reason ? "" : reason, page: "" }) },
      `${count} ${count === 1 ? "waits" : "wait"}: ${reason}`))));
  const head = element("tr", {}, COLUMNS.map(([name, title]) => element("th", { scope: "col", class: `${NUMBERS.has(name) ? "num" : ""}${["queue", "priority", "age", "why"].includes(name) ? " wide" : ""}`,
    "aria-sort": wanted.sort === name ? "ascending" : null }, element("button", { type: "button", onclick: () => change({ sort: wanted.sort === name ? "" : name }) }, title + (wanted.sort === name ? " ▾" : "")))));
  const pager = pages > 1 && element("div", { class: "tools" }, element("button", { type: "button", disabled: page === 1, onclick: () => change({ page: String(page - 1) }) }, "Previous"),
    `Page ${page} of ${pages}`, element("button", { type: "button", disabled: page === pages, onclick: () => change({ page: String(page + 1) }) }, "Next"));
  const shown = found.slice((page - 1) * PAGE, page * PAGE);
  const empty = model.gangs.length ? "No gang matches." : "No gang yet: kubectl apply -f a Job, PodGroup or pod with schedulerName enbloc.";
  return element("div", {}, tools, chips, element("p", { class: "dim", role: "status" }, `${plural(found.length, "gang")}${found.length < model.gangs.length ? ` of ${model.gangs.length}` : ""}`),
    shown.length ? element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Gangs" }, element("table", {}, element("thead", {}, head), element("tbody", {}, gangRows(shown, model, link)))) : element("p", {}, empty), pager);
};
