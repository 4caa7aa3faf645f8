// The dashboard: routes in the address, data that is fetched when the server says that it changed, one view at a time.
import { amount, colourOf, element, giveColours, instant, isDark, isWaiting, swatch, zone } from "./format.js";
import { gangView } from "./gang.js";
import { gangsView, waitsOf } from "./gangs.js";
import { mapCanvas, mapKey, nodesTable, withResource } from "./map.js";
import { modelAt, timeControl } from "./moment.js";
import { queuesView } from "./queues.js";
import { summaryView } from "./summary.js";
import { timelineView } from "./timeline.js";

const VIEWS = [["summary", "Summary"], ["map", "Map"], ["gangs", "Gangs"], ["timeline", "Timeline"], ["queues", "Queues"]];
const LEAST_MS = 500; // at most two updates a second
const SAMPLES = 2000;
const LEGEND = 12;
const embedded = document.getElementById("model");
const EXPLAINED_MS = 30000; // after this time a waiting gang on the screen is explained anew
const TOKEN = "enbloc-token"; // of this tab only: it is neither in a link that is shared nor sent unasked
const state = { model: null, detail: {}, explained: {}, fetched: 0, changed: 0, view: {}, series: [], lost: false, refused: false, at: null, moment: null, time: null };
const KEYS = [["1 – 5", "switch views"], ["/", "search gangs"], ["Esc", "leave the search, close this"], ["+ − ← → ↑ ↓", "zoom, pan and scroll the timeline"], ["?", "these keys"]];
const TIME_KEYS = [", .", "the change before, the next change"]; // of a saved simulation

const route = () => {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, ...rest] = path.split("/");
  return { view: view || "summary", name: rest.map(decodeURIComponent).join("/"), wanted: Object.fromEntries(new URLSearchParams(query || "")) };
};
const address = (view, wanted) => {
  const kept = Object.entries(wanted).filter(([, value]) => value);
  return `#/${view}${kept.length ? `?${new URLSearchParams(kept)}` : ""}`;
};
const gangAddress = (name) => `#/gang/${name.split("/").map(encodeURIComponent).join("/")}`;
const open = (name) => { location.hash = gangAddress(name); };


const complete = (model) => {
  for (const node of model.nodes) node.claimed = node.claims;
  model.nodes = withResource(model.nodes, model.resource);
  for (const gang of model.gangs) { gang.namespace = gang.gang.split("/")[0]; gang.waits = waitsOf(gang, model.asOf); }
  const used = model.nodes.reduce((total, node) => total + node.parts.reduce((all, part) => all + part[1], 0), 0);
  const waiting = model.gangs.filter(isWaiting).length;
  if (model.history) model.series = model.history;
  if (!model.series) {
    state.series.push({ t: model.asOf, use: model.total[model.resource] ? used / model.total[model.resource] : 0, waiting });
    if (state.series.length > SAMPLES) state.series.shift();
    model.series = state.series;
  }
  return model;
};

// The gangs or queues that hold the most, [name, amount]; they get the colours that differ most.
const largestOf = (model, by) => {
  const held = new Map();
  for (const node of model.nodes) for (const [gang, used] of [...node.parts, ...node.claims]) {
    const name = gang < 0 ? "" : by === "queue" ? model.gangs[gang].queue : model.gangs[gang].gang;
    held.set(name, (held.get(name) || 0) + used);
  }
  const largest = [...held].filter((one) => one[1] > 0).sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1));
  giveColours(by, largest.map((one) => one[0]));
  return largest;
};

const legend = (model, resource, by) => {
  const largest = largestOf(model, by), dark = isDark();
  return element("p", { class: "legend" }, largest.slice(0, LEGEND).map(([name, used]) => {
    const text = name || "other pods";
    return swatch(colourOf(by, name, dark), name && by === "gang" ? element("a", { href: gangAddress(name) }, text) : text, ` ${amount(resource, used)}`);
  }), largest.length > LEGEND ? element("span", {}, `and ${(largest.length - LEGEND).toLocaleString("en")} more`) : null, mapKey(model, resource));
};

const mapView = (model, wanted, change, width) => {
  if (!model.nodes.length) return element("p", { class: "empty" }, "There is no node yet. Add one: kubectl apply -f a Node (docs: examples/).");
  const resources = Object.keys(model.total).filter((name) => name !== "pods");
  const resource = wanted.resource || model.resource;
  const select = (label, name, values, chosen) => element("select", { "aria-label": label, onchange: (event) => change({ [name]: event.target.value }) },
    values.map(([value, text]) => element("option", { value, selected: value === chosen }, text)));
  const shown = resource === model.resource ? model : { ...model, nodes: withResource(model.nodes, resource) };
  return element("div", {}, element("div", { class: "tools" },
    select("Colour", "by", [["gang", "Colour by gang"], ["queue", "Colour by queue"]], wanted.by || "gang"),
    select("Resource", "resource", resources.map((name) => [name, name]), resource),
    element("span", { class: "dim" }, matchMedia("(hover: none)").matches ? "tap a node for its gang" : "hover for what is on a node, click for its gang")),
    legend(shown, resource, wanted.by || "gang"),
    mapCanvas(shown, { resource, by: wanted.by || "gang", open, width, height: Math.max(420, window.innerHeight - 210) }),
    element("details", {}, element("summary", {}, "As a table"), nodesTable(shown, resource, gangAddress)));
};

// A saved simulation can be shown at any of its instants; the address has it.
const chosen = () => {
  if (!state.model?.moments) return;
  if (!state.time) {
    state.time = timeControl(state.model, (at) => { state.at = at; const { wanted } = route(); history.replaceState(null, "", addressAt({ ...wanted, t: at === null ? "" : String(at) })); draw(); });
    document.querySelector("header").append(state.time.bar);
  }
  const { wanted } = route(), given = wanted.t ? Number(wanted.t) : NaN;
  if (!Number.isNaN(given)) state.at = given < state.model.asOf ? given : null;
  else if (state.at !== null) history.replaceState(null, "", addressAt({ ...wanted, t: String(state.at) }));
  if (state.moment?.at !== state.at) state.moment = { at: state.at, model: state.at === null ? state.model : modelAt(state.model, state.at, withResource) };
  state.time.show(state.at);
};
const addressAt = (wanted) => address(location.hash.replace(/^#\/?/, "").split("?")[0] || "summary", wanted);
const shownModel = () => state.moment?.model || state.model;

const draw = () => {
  chosen();
  const { view, name, wanted } = route(), model = shownModel();
  for (const link of document.querySelectorAll("nav a")) link.toggleAttribute("aria-current", link.dataset.view === (view === "gang" ? "gangs" : view));
  if (state.refused) { askForToken(); return; }
  if (!model) return;
  const main = document.querySelector("main"), width = Math.max(280, main.clientWidth - 2 * parseFloat(getComputedStyle(main).paddingLeft));
  const change = (changed) => { history.replaceState(null, "", address(view, changed === null ? { t: wanted.t } : { ...wanted, ...changed })); draw(); };
  const filtered = (filters) => address("gangs", filters), began = performance.now();
  const focused = document.activeElement?.id, place = document.activeElement?.selectionStart, top = window.scrollY;
  const openDetails = main.querySelector("details")?.open;
  const made = {
    map: () => mapView(model, wanted, change, width), gangs: () => gangsView(model, wanted, { change, link: gangAddress }),
    gang: () => largestOf(model, "gang") && gangView(model, name, state.at === null ? detailOf(name) : {}, { link: gangAddress, open, resource: model.resource, width }),
    timeline: () => timelineView(model, { view: state.view, open, width }), queues: () => queuesView(model, { link: filtered, width }),
    summary: () => summaryView(model, { link: filtered, gang: gangAddress, width }),
  }[view];
  main.replaceChildren(made ? made() : element("p", {}, "There is no such view."));
  if (openDetails && main.querySelector("details")) main.querySelector("details").open = true;
  const again = focused && document.getElementById(focused);
  if (again) { again.focus(); if (place !== undefined && place !== null && again.setSelectionRange) again.setSelectionRange(place, place); }
  window.scrollTo(0, top);
  showAge();
  performance.clearMeasures("draw"); performance.measure("draw", { start: began }); // what `make web` reads
};

// On paper there is nothing to click: all views one after another, the list of gangs whole.
const PAPER = 700; // pixels of a page's width
const printAll = () => {
  if (!state.model || state.refused || route().view === "gang") return;
  const model = shownModel(), link = () => "#/gangs", print = true, made = {
    Summary: () => summaryView(model, { link, gang: gangAddress, width: PAPER }), Map: () => mapView(model, {}, () => {}, PAPER), Timeline: () => timelineView(model, { view: {}, open, width: PAPER, print }),
    Queues: () => queuesView(model, { link, width: PAPER }), Gangs: () => gangsView(model, {}, { change: () => {}, link: gangAddress, print }),
  };
  document.querySelector("main").replaceChildren(...Object.entries(made).map(([title, make]) => element("section", { class: "sheet" }, element("h2", { class: "title" }, title), make())));
};

const showAge = () => {
  const label = document.getElementById("as-of"), model = shownModel();
  if (!model) return;
  const age = Date.now() / 1000 - model.asOf;
  label.classList.toggle("lost", state.lost); label.classList.toggle("live", model.live && !state.lost && age < 15);
  if (!model.live) label.textContent = model.virtual ? `a simulation, ${state.at === null ? "ended" : "shown"} at ${instant(model.asOf, true)}` : `as of ${instant(model.asOf)}, times in ${zone()}`;
  else label.textContent = `${state.lost ? "not connected; " : ""}as of ${age < 3 ? "now" : `${Math.round(age)} s ago`}, times in ${zone()}`;
};

const headers = () => ({ Accept: "application/json", ...(sessionStorage.getItem(TOKEN) ? { Authorization: `Bearer ${sessionStorage.getItem(TOKEN)}` } : {}) });

const fetchJson = async (path) => {
  const answer = await fetch(path, { headers: headers() });
  if (answer.status === 401) state.refused = true;
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).message || String(answer.status));
  state.refused = false;
  return answer.json();
};

const pathOf = (name) => name.split("/").map(encodeURIComponent).join("/");

// Where the page is not on loopback, its data needs a token.
const askForToken = () => {
  const main = document.querySelector("main");
  if (document.getElementById("token")) return;
  const input = element("input", { type: "password", id: "token", autocomplete: "off", required: true, "aria-label": "Token" });
  const form = element("form", { class: "tools", onsubmit: (event) => { event.preventDefault(); sessionStorage.setItem(TOKEN, input.value.trim()); load(); follow(); } },
    input, element("button", { type: "submit" }, "Show"));
  main.replaceChildren(element("h2", {}, "This dashboard needs a token"), element("p", {}, "It is in the log of the process that serves it, or in the file that its --dashboard-token-file names; of `enbloc up`, in its kubeconfig."),
    sessionStorage.getItem(TOKEN) ? element("p", { class: "Failed", role: "alert" }, "That token was refused.") : null, form);
  document.getElementById("as-of").textContent = "not shown";
  input.focus();
};

const loadDetail = async () => {
  const { view, name } = route();
  if (view !== "gang" || !state.model?.gangs.some((gang) => gang.gang === name)) return;
  try {
    state.detail[name] = embedded ? (state.model?.details || {})[name] || null : await fetchJson(`api/gang/${pathOf(name)}`);
  } catch { state.detail[name] = null; }
  explain(name);
};

// What the scheduler said at once, and what was tried on a copy of the cluster once that is known.
const detailOf = (name) => {
  const found = state.detail[name], more = state.explained[name];
  if (!more) return found;
  return { ...found, ...more.answer, sentence: found?.sentence, trying: more.answer ? false : more.trying, failed: more.answer ? "" : more.failed };
};

// Asks what would let a waiting gang start: when its page is opened, when its sentence changed, and now and then.
const explain = async (name) => {
  const gang = state.model?.gangs.find((one) => one.gang === name), known = state.explained[name];
  if (!state.model?.live || !gang) return;
  if (!isWaiting(gang)) { delete state.explained[name]; return; }
  if (known && (known.trying || (known.of === gang.sentence && Date.now() - known.at < EXPLAINED_MS))) return;
  const asked = { ...known, of: gang.sentence, at: Date.now(), trying: true, failed: "" };
  state.explained[name] = asked;
  try { asked.answer = await fetchJson(`api/explain/${pathOf(name)}`); } catch (why) { asked.failed = String(why.message || why); }
  asked.trying = false;
  if (route().view === "gang" && route().name === name) draw();
};

let waiting = false;
const load = async () => {
  if (waiting) return;
  waiting = true;
  const rest = state.fetched + LEAST_MS - Date.now();
  if (rest > 0) await new Promise((done) => setTimeout(done, rest));
  waiting = false;
  state.fetched = Date.now();
  try { state.model = complete(await fetchJson("api/model")); state.lost = false; } catch { state.lost = true; }
  if (state.model?.live && !state.refused) follow();
  await loadDetail();
  draw();
  if (!state.lost && state.model.asOf < state.changed) load(); // what was fetched is older than the last change
};

const told = (event, data) => {
  state.lost = false;
  if (event === "changed") { state.changed = Number(data); load(); }
  if (event === "tick" && state.model && state.model.asOf >= state.changed) { // nothing changed up to then
    state.model.asOf = Math.max(state.model.asOf, Number(data));
    for (const gang of state.model.gangs) gang.waits = waitsOf(gang, state.model.asOf);
    // An open list of choices stays open; the map shows no time that passes, so it is drawn when something changed.
    if (!document.activeElement?.matches("select") && route().view !== "map") draw();
  }
  showAge();
};

// Server-sent events, read by fetch: an EventSource sends no token.
let following = false;
const follow = async () => {
  if (following) return;
  following = true;
  try {
    const answer = await fetch("api/stream", { headers: headers() });
    if (!answer.ok) throw new Error(String(answer.status));
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const parts = (text + value).split("\n\n");
      text = parts.pop();
      for (const part of parts) { const found = /^event: (\w+)\ndata: (.*)$/.exec(part); if (found) told(found[1], found[2]); }
    }
  } catch { /* the server has ended, or refuses */ }
  following = false;
  if (state.refused) return;
  state.lost = true; showAge();
  setTimeout(load, 2000); // which follows again
};

const showKeys = () => {
  const dialog = document.getElementById("keys");
  if (!dialog.firstChild) dialog.append(element("h2", {}, "Keys"), element("table", {}, element("tbody", {}, [...KEYS, ...(state.time ? [TIME_KEYS] : [])].map(([key, text]) => element("tr", {}, element("th", { scope: "row" }, key), element("td", {}, text))))),
    element("form", { method: "dialog" }, element("button", {}, "Close")));
  if (!dialog.open) dialog.showModal();
};

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && event.target.id === "search") event.target.blur();
  if (event.key === "?" && !event.target.matches("input, textarea")) showKeys();
  if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  const number = Number(event.key);
  if (number >= 1 && number <= VIEWS.length) location.hash = `#/${VIEWS[number - 1][0]}`;
  if (event.key === ",") state.time?.before();
  if (event.key === ".") state.time?.after();
  if (event.key === "/") {
    event.preventDefault();
    if (route().view !== "gangs") location.hash = "#/gangs";
    setTimeout(() => document.getElementById("search")?.focus(), 0);
  }
});
document.querySelector("nav").append(...VIEWS.map(([view, title], index) => element("a", { href: `#/${view}`, "data-view": view, title: `Key ${index + 1}` }, title)));
// The page of a gang begins at its top; a list that one comes back to is where it was left.
const places = new Map();
window.addEventListener("hashchange", async (event) => {
  if (event.oldURL && event.oldURL !== event.newURL) places.set(event.oldURL, window.scrollY);
  await loadDetail();
  draw();
  if (event.newURL && event.newURL !== event.oldURL) window.scrollTo(0, route().view === "gang" ? 0 : places.get(event.newURL) || 0);
});
window.addEventListener("beforeprint", printAll);
window.addEventListener("afterprint", draw);
window.addEventListener("resize", () => requestAnimationFrame(draw));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
document.getElementById("help").addEventListener("click", showKeys);
const given = /^#token=(.+)$/.exec(location.hash); // from the address that the server printed; the fragment is never sent
if (given) { sessionStorage.setItem(TOKEN, decodeURIComponent(given[1])); history.replaceState(null, "", "#/summary"); }
if (embedded) { state.model = complete(JSON.parse(embedded.textContent)); loadDetail().then(draw); } else { load(); setInterval(showAge, 1000); }
