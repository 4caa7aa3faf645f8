// The first view: figures, why gangs wait, use and waiting over time.
import { stepChart } from "./chart.js";
import { duration, element, isWaiting, plural } from "./format.js";
import { reasonsOf } from "./gangs.js";

const median = (values) => { const sorted = [...values].sort((one, other) => one - other); return sorted.length ? sorted[Math.floor((sorted.length - 1) / 2)] : null; };

const card = (title, value, href) => element(href ? "a" : "div", { class: "card", href }, element("span", { class: "dim" }, title), element("b", {}, value));

export const summaryView = (model, { link }) => {
  const of = (state) => model.gangs.filter((gang) => gang.state === state).length;
  const started = model.gangs.filter((gang) => gang.started !== null && gang.started !== undefined).map((gang) => gang.waits);
  const reasons = reasonsOf(model.gangs);
  const used = model.nodes.reduce((total, node) => total + node.parts.reduce((all, part) => all + part[1], 0), 0);
  const resource = model.resource, total = model.total[resource] || 0;
  const charts = model.series.length < 2 ? [] : [
    element("h2", {}, `Use of ${resource}`), stepChart(`Use of ${resource} over time`, model.series.map((point) => [point.t, point.use]), { virtual: model.virtual, top: 1, percent: true }),
    element("h2", {}, "Gangs that wait"), stepChart("Waiting gangs over time", model.series.map((point) => [point.t, point.waiting]), { virtual: model.virtual, waits: true })];
  return element("div", {},
    element("div", { class: "cards" }, card("Nodes", String(model.nodes.length), "#/map"), card(`${resource} in use`, total ? `${Math.round((used / total) * 100)}%` : "–", "#/map"),
      card("Running", String(of("Running")), link({ state: "Running" })), card("Waiting", String(model.gangs.filter(isWaiting).length), link({ state: "Waiting" })),
      card("Failed", String(of("Failed")), link({ state: "Failed" })), card("Median wait", duration(median(started)))),
    reasons.length ? [element("h2", {}, "Why gangs wait"), element("ul", { class: "chips" }, reasons.map(([reason, count]) => element("li", {},
      element("a", { href: link({ reason }) }, `${count} ${count === 1 ? "waits" : "wait"}: ${reason}`))))]
      : element("p", { class: "dim" }, model.gangs.length ? "No gang waits." : "No gang yet: kubectl apply -f a Job, PodGroup or pod with schedulerName enbloc."),
    charts, model.left?.length ? [element("h2", {}, "Objects without effect"), element("ul", {}, model.left.slice(0, 50).map((one) => element("li", {}, one)))] : [],
    element("p", { class: "dim" }, plural(model.gangs.length, "gang"), " in all."));
};
