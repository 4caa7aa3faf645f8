// The list of gangs: search, filters, waiting gangs grouped by reason, sorting, pages of a hundred.
import { duration, element, isWaiting, plural, sum } from "./format.js";

const PAGE = 100;
const MOST_PRINTED = 2000;
const COLUMNS = [
  ["gang", "Gang", (gang) => gang.gang], ["state", "State", (gang) => gang.state], ["queue", "Queue", (gang) => gang.queue],
  ["priority", "Priority", (gang) => -gang.priority], ["pods", "Pods", (gang) => -sum(gang.pods)],
  ["age", "Came", (gang) => -(gang.came ?? 0)], ["waited", "Waits", (gang) => -gang.waits], ["why", "Why", (gang) => gang.sentence],
];
const NUMBERS = new Set(["priority", "pods", "age", "waited"]);

export const waitsOf = (gang, asOf) => gang.came === null ? 0 : Math.max(0, (gang.started ?? (isWaiting(gang) ? asOf : gang.ended ?? gang.came)) - gang.came);

// What a reason of the closed set (N6) says, where the scheduler found nothing more precise.
const REASONS = {
  NotEnoughPods: "too few of its pods exist", SchedulingGated: "its pods are held by scheduling gates", OtherScheduler: "its pods name another scheduler",
  FailedCreate: "its pods could not be created", UnsupportedConstraint: "a constraint is not honoured in this version", GangInvalid: "something in it or its queue is not valid",
  InternalError: "an error of the scheduler: see its log",
  GroupNotReady: "a gang that it starts with is not ready", TimedOut: "its waiting time is over", NotEnoughResources: "its minimum is not available", Unschedulable: "its pods do not fit",
  QueueFull: "its queue is full", ClaimNotAllowed: "it may not claim room for pods that do not exist", BlockedByFIFO: "behind another gang of a FIFO queue", HoldReleased: "it released its room for another gang",
  Preempting: "pods that it evicted are stopping", Surplus: "its gang has not started",
};
export const causeText = (cause) => REASONS[cause] || cause;

// In a list the badge beside it says that it waits.
const whyText = (gang) => {
  if (!isWaiting(gang) || !gang.sentence.startsWith("It waits: ")) return gang.sentence;
  const rest = gang.sentence.slice("It waits: ".length);
  return rest.charAt(0).toUpperCase() + rest.slice(1);
};

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

const gangRows = (gangs, model, link) => gangs.map((gang) => element("tr", {},
  element("td", { class: "name" }, element("a", { href: link(gang.gang) }, gang.gang)), element("td", {}, element("span", { class: `state ${gang.state}` }, gang.state)),
  element("td", { class: "wide" }, gang.queue), element("td", { class: "num wide" }, String(gang.priority)), element("td", { class: "num", title: "pods that run or start, of all" }, podsText(gang)),
  element("td", { class: "num wide" }, gang.came === null ? "–" : model.virtual ? duration(gang.came) : `${duration(model.asOf - gang.came)} ago`),
  element("td", { class: "num" }, gang.waits >= 1 ? duration(gang.waits) : "–"), element("td", { class: isWaiting(gang) ? "why" : "why wide dim" }, whyText(gang))));

// Without `sorting` its heads are plain text.
export const gangsTable = (gangs, model, link, title, sorting = null) => element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title },
  element("table", { class: "gangs" }, element("thead", {}, element("tr", {}, COLUMNS.map(([name, text]) => element("th", { scope: "col",
    class: `${NUMBERS.has(name) ? "num" : ""}${["queue", "priority", "age", "why"].includes(name) ? " wide" : ""}`, "aria-sort": sorting?.by === name ? "ascending" : null },
    sorting ? element("button", { type: "button", id: `sort-${name}`, title: `Sort by ${text.toLowerCase()}`, onclick: () => sorting.change({ sort: sorting.by === name ? "" : name }) }, text, sorting.by === name ? " ▾" : "") : text)))),
  element("tbody", {}, gangRows(gangs, model, link))));

export const gangsView = (model, wanted, { change, link, print = false }) => {
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
    element("button", { type: "button", title: reason, "aria-pressed": String(wanted.reason === reason), onclick: () => change({ reason: wanted.reason === reason ? "" : reason, page: "" }) },
      element("b", {}, String(count)), ` ${count === 1 ? "waits" : "wait"}: ${causeText(reason)}`))));
  const pager = pages > 1 && element("div", { class: "tools pager" }, element("button", { type: "button", disabled: page === 1, onclick: () => change({ page: String(page - 1) }) }, "Previous"),
    `Page ${page} of ${pages}`, element("button", { type: "button", disabled: page === pages, onclick: () => change({ page: String(page + 1) }) }, "Next"));
  const shown = print ? found.slice(0, MOST_PRINTED) : found.slice((page - 1) * PAGE, page * PAGE);
  const empty = model.gangs.length ? "No gang matches." : "No gang yet: kubectl apply -f a Job, PodGroup or pod with schedulerName enbloc.";
  return element("div", {}, tools, chips, element("p", { class: "dim", role: "status" }, `${plural(found.length, "gang")}${found.length < model.gangs.length ? ` of ${model.gangs.length.toLocaleString("en")}` : ""}`),
    shown.length ? gangsTable(shown, model, link, "Gangs", { by: wanted.sort, change }) : element("p", { class: "empty" }, empty), pager);
};
