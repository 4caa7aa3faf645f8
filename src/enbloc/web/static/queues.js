// Queues as a tree: used, deserved, guaranteed and capped, a bar a resource.
import { linesChart } from "./chart.js";
import { amount, colourOf, element, isDark, plural } from "./format.js";

const bar = (used, top, marks) => {
  const percent = (value) => `${Math.min(100, top ? (value / top) * 100 : 0).toFixed(1)}%`;
  const fill = element("i", {}); fill.style.width = percent(used);
  return element("div", { class: "bar" }, fill, marks.filter(([value]) => value > 0).map(([value, name]) => {
    const mark = element("u", { class: name, title: `${name} ${value}` }); mark.style.left = percent(value); return mark;
  }));
};

const resourcesOf = (queue, total) => Object.keys(total).filter((name) => name !== "pods" && (queue.used[name] || queue.capability[name] || queue.deserved[name] || queue.guarantee[name]));

const queueBlock = (queue, children, total, link) => {
  const rows = resourcesOf(queue, total).map((name) => {
    const cap = queue.capability[name], deserved = queue.deserved[name] || 0, guarantee = queue.guarantee[name] || 0;
    const words = [`${amount(name, queue.used[name] || 0)} of ${amount(name, cap ?? total[name])}`, deserved && `deserved ${amount(name, deserved)}`, guarantee && `guaranteed ${amount(name, guarantee)}`];
    return [element("span", {}, name), bar(queue.used[name] || 0, cap ?? total[name], [[deserved, "deserved"], [guarantee, "guarantee"]]), element("span", { class: "dim" }, words.filter(Boolean).join(", "))];
  });
  return element("div", { class: "queue" },
    element("div", {}, element("b", {}, element("a", { href: link({ queue: queue.queue }) }, queue.queue)), " ",
      element("span", { class: "dim" }, [queue.state !== "Open" && queue.state, `weight ${queue.weight}`, queue.priority && `priority ${queue.priority}`, `${plural(queue.running, "gang")} running`, `${queue.waiting} waiting`].filter(Boolean).join(" · "))),
    rows.length ? element("div", { class: "bars" }, rows) : null, children);
};

// The part of the cluster that each queue used, over time.
const shares = (model) => {
  const samples = (model.series || []).filter((sample) => sample.queues);
  const names = [...new Set(samples.flatMap((sample) => Object.keys(sample.queues)))].sort();
  if (samples.length < 2 || !names.length) return null;
  const dark = isDark();
  const lines = names.map((name) => [name, [...samples.map((sample) => [sample.t, sample.queues[name] || 0]), [Math.max(model.asOf, samples.at(-1).t), samples.at(-1).queues[name] || 0]], colourOf(name, dark)]);
  const legend = element("p", { class: "legend" }, lines.map(([name, points, colour]) => {
    const box = element("i", {}); box.style.background = colour;
    return element("span", {}, box, `${name} ${Math.round(points.at(-1)[1] * 100)}%`);
  }));
  return element("section", {}, element("h2", {}, `Use of ${model.resource} by queue over time`), legend, linesChart(`Use of ${model.resource} by queue over time`, lines, { virtual: model.virtual }));
};

export const queuesView = (model, { link }) => {
  const names = new Set(model.queues.map((queue) => queue.queue));
  const below = (parent) => model.queues.filter((queue) => (names.has(queue.parent) ? queue.parent : "") === parent);
  const seen = new Set();
  const branch = (queue) => { seen.add(queue.queue); return queueBlock(queue, below(queue.queue).filter((one) => !seen.has(one.queue)).map(branch), model.total, link); };
  return element("div", {}, element("p", { class: "dim" }, "The bar is what running pods use; marks are deserved (amber) and guaranteed (green)."),
    model.queues.length ? [below("").map(branch), shares(model)] : element("p", {}, "There is no queue."));
};
