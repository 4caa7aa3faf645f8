// The first view: figures, why gangs wait, which wait longest, use and waiting over time.
import { chart } from "./chart.js";
import { duration, element, isWaiting, plural } from "./format.js";
import { causeText, gangsTable, reasonsOf } from "./gangs.js";

const LONGEST = 8;

const median = (values) => { const sorted = [...values].sort((one, other) => one - other); return sorted.length ? sorted[Math.floor((sorted.length - 1) / 2)] : null; };

const percentile = (values, part) => { const sorted = [...values].sort((one, other) => one - other); return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] : null; };

// Of steps, up to an instant.
const mean = (points, end) => {
  let total = 0;
  points.forEach(([time, value], index) => { total += value * Math.max(0, (points[index + 1]?.[0] ?? end) - time); });
  return points.length && end > points[0][0] ? total / (end - points[0][0]) : null;
};

const card = (title, value, href, kind) => element(href ? "a" : "div", { class: "card", href }, element("span", {}, title), element("b", { class: kind }, value));

export const summaryView = (model, { link, gang, width }) => {
  const of = (state) => model.gangs.filter((one) => one.state === state).length;
  const started = model.gangs.filter((one) => one.started !== null && one.started !== undefined).map((one) => one.waits);
  const reasons = reasonsOf(model.gangs), waiting = model.gangs.filter(isWaiting), failed = of("Failed");
  const ended = model.virtual, listed = ended ? model.gangs.filter((one) => one.waits >= 1) : waiting; // of a simulation the whole matters, not its last instant
  const longest = [...listed].sort((one, other) => other.waits - one.waits || (one.gang < other.gang ? -1 : 1)).slice(0, LONGEST);
  const used = model.nodes.reduce((total, node) => total + node.parts.reduce((all, part) => all + part[1], 0), 0);
  const resource = model.resource, total = model.total[resource] || 0, unready = model.nodes.filter((node) => node.status !== "Ready").length;
  const half = width > 640 ? (width - 32) / 2 : width;
  const use = model.series.map((point) => [point.t, point.use]), waits = model.series.map((point) => [point.t, point.waiting]);
  const charts = model.series.length < 2 ? null : element("div", { class: "pair" },
    element("section", {}, element("h2", {}, `Use of ${resource}`), chart(`Use of ${resource} over time`, [["", use, ""]], { virtual: model.virtual, top: 1, percent: true, width: half })),
    element("section", {}, element("h2", {}, "Gangs that wait"), chart("Waiting gangs over time", [["", waits, ""]], { virtual: model.virtual, kind: "waits", width: half })));
  const average = ended ? mean(use, model.asOf) : null;
  const figures = ended ? [card(`Mean use of ${resource}`, average === null ? "–" : `${Math.round(average * 100)}%`, "#/map"), card("Finished", of("Finished").toLocaleString("en"), link({ state: "Finished" }))]
    : [card(`${resource} in use`, total ? `${Math.round((used / total) * 100)}%` : "–", "#/map")];
  return element("div", {},
    element("div", { class: "cards" }, card("Nodes", `${model.nodes.length.toLocaleString("en")}${unready ? `, ${unready} not ready` : ""}`, "#/map"), figures,
      card("Running", of("Running").toLocaleString("en"), link({ state: "Running" })), card("Waiting", waiting.length.toLocaleString("en"), link({ state: "Waiting" }), waiting.length ? "Waiting" : null),
      card("Failed", failed.toLocaleString("en"), link({ state: "Failed" }), failed ? "Failed" : null), card("Median wait", duration(median(started))), ended && card("90% waited at most", duration(percentile(started, 0.9)))),
    reasons.length ? [element("h2", {}, "Why gangs wait"), element("ul", { class: "chips" }, reasons.map(([reason, count]) => element("li", {},
      element("a", { href: link({ reason }), title: reason }, element("b", {}, String(count)), ` ${count === 1 ? "waits" : "wait"}: ${causeText(reason)}`))))]
      : element("p", { class: "dim" }, model.gangs.length ? "No gang waits." : "No gang yet: kubectl apply -f a Job, PodGroup or pod with schedulerName enbloc."),
    longest.length ? [element("h2", {}, `${ended ? "Waited" : "Waiting"} longest${listed.length > LONGEST ? `: ${LONGEST} of ${listed.length.toLocaleString("en")}` : ""}`), gangsTable(longest, model, gang, "Gangs that wait longest")] : null,
    charts, model.left?.length ? [element("h2", {}, "Objects without effect"), element("ul", {}, model.left.slice(0, 50).map((one) => element("li", {}, one)))] : [],
    element("p", { class: "dim" }, plural(model.gangs.length, "gang"), " in all."));
};
