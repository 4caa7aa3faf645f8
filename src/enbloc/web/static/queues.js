// Queues as a tree: used, deserved, guaranteed and capped, a bar a resource.
import { chart } from "./chart.js";
import { amount, colourOf, element, giveColours, isDark, plural, swatch } from "./format.js";

const bar = (name, used, top, marks) => {
  const percent = (value) => `${Math.min(100, top ? (value / top) * 100 : 0).toFixed(1)}%`;
  const fill = element("i", { class: marks.some(([value, kind]) => kind === "deserved" && value > 0 && used > value * 1.0001) ? "over" : null }); fill.style.width = percent(used);
  return element("div", { class: "bar" }, fill, marks.filter(([value]) => value > 0).map(([value, kind]) => {
    const mark = element("u", { class: kind, title: `${kind} ${amount(name, value)}` }); mark.style.left = percent(value); return mark;
  }));
};

const resourcesOf = (queue, total) => Object.keys(total).filter((name) => name !== "pods" && (queue.used[name] || queue.capability[name] || queue.guarantee[name] || (queue.deserved[name] && queue.running + queue.waiting > 0)));

const queueRows = (queue, depth, total, link) => {
  const names = resourcesOf(queue, total);
  const notes = [queue.state !== "Open" && queue.state, `weight ${queue.weight}`, queue.priority && `priority ${queue.priority}`, `${queue.running} running`, `${queue.waiting} waiting`].filter(Boolean).join(" · ");
  const title = element("td", { rowspan: Math.max(1, names.length), class: "queue" },
    element("div", { class: `depth-${Math.min(depth, 6)}` }, element("a", { href: link({ queue: queue.queue }) }, queue.queue), element("div", { class: "dim small" }, notes)));
  if (!names.length) return [element("tr", { class: "first" }, title, element("td", { colspan: 6, class: "dim" }, "uses nothing"))];
  return names.map((name, index) => {
    const cap = queue.capability[name], used = queue.used[name] || 0, deserved = queue.deserved[name] || 0, guarantee = queue.guarantee[name] || 0;
    const figure = (value) => element("td", { class: "num" }, value ? amount(name, value) : "–");
    return element("tr", { class: index ? null : "first" }, index ? null : title, element("td", {}, name),
      element("td", { class: "bars" }, bar(name, used, cap ?? total[name], [[deserved, "deserved"], [guarantee, "guarantee"]])),
      element("td", { class: "num" }, `${amount(name, used)} of ${amount(name, cap ?? total[name])}`), figure(deserved), figure(guarantee), element("td", { class: "num" }, cap === undefined ? "–" : amount(name, cap)));
  });
};

// The part of the cluster that each queue used, over time.
const shares = (model, width) => {
  const samples = (model.series || []).filter((sample) => sample.queues);
  const names = [...new Set(samples.flatMap((sample) => Object.keys(sample.queues)))].sort();
  if (samples.length < 2 || !names.length) return null;
  const dark = isDark(), title = `Use of ${model.resource} by queue over time`;
  giveColours("queue", names);
  const lines = names.map((name) => [name, [...samples.map((sample) => [sample.t, sample.queues[name] || 0]), [Math.max(model.asOf, samples.at(-1).t), samples.at(-1).queues[name] || 0]], colourOf("queue", name, dark)]);
  return element("section", {}, element("h2", {}, title), element("p", { class: "legend" }, lines.map(([name, points, colour]) => swatch(colour, `${name} ${Math.round(points.at(-1)[1] * 100)}%`))),
    chart(title, lines, { virtual: model.virtual, percent: true, width }));
};

export const queuesView = (model, { link, width }) => {
  if (!model.queues.length) return element("p", { class: "empty" }, "There is no queue: every gang is in the default one, which limits nothing.");
  const names = new Set(model.queues.map((queue) => queue.queue));
  const below = (parent) => model.queues.filter((queue) => (names.has(queue.parent) ? queue.parent : "") === parent);
  const seen = new Set();
  const branch = (queue, depth) => { seen.add(queue.queue); return [queueRows(queue, depth, model.total, link), below(queue.queue).filter((one) => !seen.has(one.queue)).map((one) => branch(one, depth + 1))]; };
  const heads = [["Queue"], ["Resource"], ["Use"], ["", "num"], ["Deserved", "num"], ["Guaranteed", "num"], ["Cap", "num"]];
  return element("div", {}, element("p", { class: "legend" }, swatch("run", "in use"), swatch("over", "in use, more than deserved"), swatch("deserved", "deserved"), swatch("guarantee", "guaranteed"), element("span", {}, "a bar ends at the queue's cap, or at the cluster's size")),
    element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Queues" }, element("table", { class: "queues" },
      element("caption", {}, plural(model.queues.length, "queue")),
      element("thead", {}, element("tr", {}, heads.map(([text, kind]) => text ? element("th", { scope: "col", class: kind }, text) : element("td", {})))),
      element("tbody", {}, below("").map((queue) => branch(queue, 0))))), shares(model, width));
};
