/** The page: one view, one connection, some panels. Everything else is in the modules that this joins. */

import { Announcer } from "./side/announce.js";
import { ControlPanel } from "./side/controlpanel.js";
import { setAttribute, setText, themeColours } from "./side/dom.js";
import { ChannelList } from "./side/channellist.js";
import { EventList, newsText } from "./side/eventlist.js";
import { BandChoice } from "./side/bandchoice.js";
import { Fields } from "./side/fields.js";
import { FigureForm, loadFigures, paperColours, printFigures } from "./side/figureform.js";
import { healthGroups, joinedGroups, showHealth, silentStates } from "./side/health.js";
import { nameKeys, showHelp } from "./side/help.js";
import { CursorRows } from "./rows/cursorrow.js";
import { extentOf } from "./rows/bins.js";
import { namedBands } from "./rows/namedbands.js";
import { limitsOf } from "./rows/range.js";
import { History } from "./rows/history.js";
import { Overview } from "./rows/overview.js";
import { OverviewStrip } from "./side/overviewstrip.js";
import { Legend, toggleLegend } from "./panel/legend.js";
import { loudestPart } from "./panel/loudest.js";
import { pressKey } from "./panel/input.js";
import { showLess } from "./side/lesschoice.js";
import { LineChoice } from "./side/linechoice.js";
import { Meters, nameText } from "./side/meter.js";
import { atStored } from "./rows/stored.js";
import { Season } from "./season/season.js";
import { readPrefs, writePrefs, makePrefs, zoneOf } from "./side/prefs.js";
import { Panels } from "./panel/panels.js";
import { hasGpu } from "./plot/renderer.js";
import { applyTheme, watchTheme } from "./plot/theme.js";
import { savePast, saveSelection, saveShown } from "./side/saving.js";
import { MarkCard, viewOfMark } from "./panel/markcard.js";
import { Wall } from "./side/wall.js";
import { findClips } from "./panel/soundclips.js";
import { SelectionCard } from "./panel/selectioncard.js";
import { Session } from "./link/session.js";
import { StoredEvents } from "./link/storedevents.js";
import { Panes } from "./side/panes.js";
import { LossWatch, stateLine } from "./side/stateline.js";
import { rowsDueMs } from "./side/status.js";
import { goTo, TimeBar } from "./side/timebar.js";
import { Connection } from "./link/stream.js";
import { formatTime } from "./plot/time.js";
import { StoredTraces } from "./side/storedtraces.js";
import { StoredTraceList } from "./side/storedtracelist.js";
import { LIMITS_BYTES_MAX, readLimits } from "./rows/limits.js";
import { Tables } from "./side/tables.js";
import { takeDropped, ViewList } from "./side/viewlist.js";
import { Views, zoneOfLink } from "./side/views.js";
import { askForToken, useLinkToken } from "./side/entry.js";
import { concerns } from "./link/events.js";
import { nextTopic, spectraOf, topicTitle } from "./link/topics.js";
import { BOUNDS, DEFAULTS, atShownTime, formatFragment, fragmentFault, fragmentWriter, makeView, parseFragment, shownMs } from "./panel/view.js";

const SLOW_MS = 250;
const SPOKEN_MS = 1000;
const REDUCED_MS = 1000;
const NOTICE_MS = 10_000;
const NOTICES_MAX = 4;

const at = (id) => document.getElementById(id);
const base = document.baseURI;
const storage = () => localStorage;

/** Sources without a channel that are named where there is no channel at all. */
const SILENT_NAMED = 6;

/** Different texts about the past that are shown, each once. */
const SAID_MAX = 100;

let view = makeView();
let prefs = readPrefs(storage);
let phase = { phase: "connecting", wait_ms: 0, why: "", needsToken: false };
let noticeTimer = null;
let noticed = [];
let leftBefore = 0;
let stateSaid = "";
/** Sources without a channel as the list has them, with their states. */
let silentSaid = "[]";
/** Time at which a view that has none rests while no rows come, see `restOf`; null: it is live, or of an archive. */
let restsAt = null;

const now = () => performance.now();
const announcer = new Announcer((text) => setText(at("live-region"), text), {
  setTimeout: (...given) => setTimeout(...given),
  now,
});
const session = new Session({ listeners: { changed, row: rowCame, refused: notice }, now });
const connection = new Connection({
  base,
  handlers: { text: (message) => session.text(message), rows: rowsCame, phase: phaseChanged },
});
const past = new History({ fetch: (...given) => fetch(...given), base });
const cursorRows = new CursorRows({ fetch: (...given) => fetch(...given), base });
const saidOfPast = new Set();
past.onnotice = (text) => {
  if (saidOfPast.has(text) || saidOfPast.size >= SAID_MAX) return;
  saidOfPast.add(text);
  notice(text);
};
/** Name of the time zone that is shown. */
const shownZone = () => zoneOf(prefs, session.timeZone);
const traces = new StoredTraces(storage);
const forced = new URLSearchParams(location.search).get("renderer");
const panels = new Panels(at("plots"), {
  session,
  past,
  cursorRows,
  change,
  act,
  link,
  traces,
  view: () => view,
  zone: shownZone,
  resized: ask,
  isSelecting: () => isSelecting,
  selected: () => setSelecting(false),
  forced,
});
// The panels know their axes once they are drawn.
const opened = () => requestAnimationFrame(() => toLoudest());
const season = new Season(at("season"), { session, change, opened, fetch: (...given) => fetch(...given), base, notice });
const fields = new Fields(
  { display: at("display"), holds: at("hold-fields"), cursors: at("cursor-fields"), prefs: at("prefs") },
  { change, changeRange: (range) => change(panels.rangePart(view, range)), link, changePrefs, scene: () => panels.scene() },
);
const bandChoice = new BandChoice(at("bands"), { change, keep: keepBands, shown: () => panels.scene().axis, notice });
const choice = new ChannelList(at("topics"), (topics) => change({ topics }));
const lineChoice = new LineChoice(at("lines"), (lines) => {
  changePrefs({ lines });
  change({ lines });
});
const control = new ControlPanel({ box: at("control"), form: at("control-form"), answer: at("control-answer") }, { base });
const traceList = new StoredTraceList(at("traces"), traces, { store: storeSpectrum, limits: storeLimits, changed: () => panels.touch() });
const figureForm = new FigureForm(at("figure-form"), { size: prefs.figure, change: (figure) => changePrefs({ figure }) });
const viewList = new ViewList(at("views"), new Views(storage), {
  state: (name) => ({ name, view, zone: prefs.zone, ...traces.state }),
  open: openView,
  link: linkOfView,
  usualName: () => [session.channels.map(({ info }) => topicTitle(info))[0] ?? "view", formatTime(shownMs(view) ?? Date.now(), shownZone()).slice(0, 19)].join(" "),
});
const legend = new Legend(at("legend"));
const meters = new Meters(at("meters"));
const tables = new Tables({ peaks: at("peaks"), cursors: at("cursors"), band: at("band") });
const eventList = new EventList(at("events"), { open: openMark, change });
const markCard = new MarkCard({
  change,
  scene: () => panels.scene(),
  select: selectMarks,
  zone: shownZone,
  hasHistory: () => session.hello?.has_history === true,
  hasSound: () => session.hello?.has_sound === true,
  clips: (mark) => findClips((...given) => fetch(...given), base, mark),
  save: (format, mark, selection) => saveSelection(format, base, { ...panels.scene(), view: { ...view, selection }, channels: session.channels.filter(({ info }) => concerns(mark, info)) }),
});
const timeBar = new TimeBar(at("timebar"), {
  go: (t1) => change(goTo(view, t1, panels.newestMs())),
  back: (ms) => panels.newestMs() !== null && change(goTo(view, (view.t1 ?? panels.newestMs()) - ms, panels.newestMs())),
  changeZone: (zone) => changePrefs({ zone }),
  zone: shownZone,
  local: zoneOf({ zone: "local" }),
  notice,
});
let isSelecting = false;
const card = new SelectionCard({
  base,
  fetch: (...given) => fetch(...given),
  change,
  save: (format) => saveSelection(format, base, { view, ...panels.scene(), channels: panels.channels }),
  toLoudest,
  link: linkOfView,
  say: (text) => announcer.say("selection", text),
});
const overview = new Overview({ fetch: (...given) => fetch(...given), base });
const storedEvents = new StoredEvents({ fetch: (...given) => fetch(...given), base });
const overviewStrip = new OverviewStrip(at("overview"), { overview, change, view: () => view });
const narrow = matchMedia("(max-width: 60rem)");
const panes = new Panes(
  {
    state: { button: at("connection"), root: at("status") },
    time: { button: at("time"), root: at("timebar") },
    measure: { button: at("measure"), root: at("tables") },
    options: { button: at("options"), root: at("side") },
  },
  { narrow, open: prefs.panes, remember: (open) => keepPrefs({ panes: open }) },
);
const losses = new LossWatch();
const wall = new Wall(document, navigator);
const writeFragment = fragmentWriter((text) => history.replaceState(null, "", `#${text}`));

/** Make a part of the view another one, and show it; a time is looked at in the plots. */
function change(part) {
  const days = part.days ?? (view.days && part.t1 === undefined);
  setView(makeView({ ...view, ...part, days }));
  writeFragment(view.t1 === restsAt ? { ...view, t1: null } : view);
  showView();
}

/** Put cursor A at the loudest moment of the active panel, unless somebody has gone elsewhere meanwhile. */
async function toLoudest() {
  const found = panels.activeMoment(view);
  const place = () => JSON.stringify([view.t1, view.span, view.selection, view.topics, view.days]);
  const asked = place();
  if (found === null || session.hello?.has_history !== true) {
    notice("Loudest moment: there is no past to look through");
    return;
  }
  try {
    const part = await loudestPart((...given) => fetch(...given), base, { scene: panels.scene(), channel: found.channel });
    if (place() !== asked) return;
    if (part === null) notice("Loudest moment: there is no data in this time");
    else change(part);
  } catch (error) {
    notice(`Loudest moment: ${error.message}`);
  }
}

/** Select marks, whose card has what they say; none closes it. */
function selectMarks(marks) {
  session.events.select(marks);
  markCard.show(marks);
}

/** Show a mark of the list in the plots. */
function openMark(mark) {
  selectMarks([mark]);
  if (session.channels.length > 0) change(viewOfMark(mark, view, panels.newestMs()));
  panes.closeSheet();
  document.querySelector(".waterfall")?.scrollIntoView({ block: "nearest" });
}

/** Store something, show it, and say so where it does not work, or does not last. */
function store(add) {
  try {
    if (!add()) notice("stored for as long as this page is open: this browser keeps nothing more");
  } catch (error) {
    notice(error.message);
  }
  traceList.show();
  panels.touch();
}

/** Store the spectrum of the active panel: the newest, or that of a cursor or of the past. */
function storeSpectrum() {
  const found = panels.activeMoment(view);
  const row = found?.moment.row ?? null;
  if (row === null) {
    notice("Store spectrum: there is no data at this time");
    return;
  }
  const name = `${topicTitle(found.channel.info)} ${formatTime(row.tMs, shownZone()).slice(0, 19)}`;
  store(() => traces.addRow(name, row));
}

/** Store limits over the levels of the active panel. */
async function storeLimits(file) {
  const found = panels.activeMoment(view);
  if (found === null) notice(`${file.name}: there is no spectrum to show limits over`);
  else if (file.size > LIMITS_BYTES_MAX) notice(`${file.name}: more than ${LIMITS_BYTES_MAX / 1024} KiB`);
  else {
    const text = await file.text();
    store(() => traces.addLimits(file.name.replace(/\.[^.]*$/, ""), readLimits(text, file.name), found));
  }
}

/** Link the level ranges of panels, or part them, now and where this browser opens the page without a link. */
function link(isLinked) {
  changePrefs({ isLinked });
  change(panels.linkPart(view, isLinked));
}

/** Keep bands with names in the view, and where this browser opens the page without a link. */
function keepBands(bands) {
  changePrefs({ bands });
  change({ bands });
}

/** Address of what is shown, for others: who reads UTC, or the source's zone, shows that. */
function linkOfView() {
  return `${location.href.split("#")[0]}#${formatFragment(view)}${prefs.zone === "local" ? "" : `&zone=${prefs.zone}`}`;
}

/** Show a view with a name; return what of it cannot be shown. */
function openView({ view: next, zone, ...state }) {
  const left = traces.showState(state);
  traceList.show();
  useZone(zone);
  change(next);
  return left.length === 0 ? "" : `no room for the stored ${left.join(", ")}: remove others first`;
}

/** Show times in a zone for now, and remember the user's own. */
function useZone(zone) {
  if (zone === null || zone === prefs.zone) return;
  prefs = makePrefs({ ...prefs, zone });
  panels.touch();
  showControls();
}

/** The view of the page's address; without one it is as this browser remembers. */
function viewOfAddress() {
  const fault = fragmentFault(location.hash);
  if (fault !== "") notice(fault);
  const isGiven = location.hash.length > 1;
  return isGiven ? parseFragment(location.hash) : makeView({ isLinked: prefs.isLinked, lines: prefs.lines, bands: prefs.bands });
}

/** Take a view; what was measured when it left the live rows is kept for it. One that rests goes on to do so, or gets live. */
function setView(given) {
  const next = given.t1 === restsAt ? { ...given, t1: null } : given;
  const isLeaving = [({ t1 }) => t1, shownMs].some((timeOf) => timeOf(view) === null && timeOf(next) !== null);
  const isFirst = next.t1 === null && next.span === DEFAULTS.span;
  view = makeView({ ...next, ...atStored(next, session.stored, isFirst) });
  if (isLeaving) session.keepMoment(shownMs(view));
  if (isLeaving) for (const channel of panels.channels) channel.keepMoment(shownMs(view));
  restsAt = session.isArchive ? null : (session.stored?.t1 ?? null);
}

/** Rest at the end of what is stored while no rows come, and go live when they do. */
function rest() {
  if (session.isArchive || view.t1 !== restsAt || restsAt === (session.stored?.t1 ?? null)) return;
  setView(view);
  showView();
}

function showView() {
  session.select(view.topics, view.less);
  panels.arrange(view);
  for (const channel of [...session.channels, ...panels.channels]) channel.keepHolds(view.holds);
  panels.touch();
  showSeason();
  showControls();
  ask();
}

/** Show the days of an archive, in place of the plots. */
function showSeason() {
  const isShown = view.days && session.isArchive;
  at("plots").hidden = isShown;
  document.body.dataset.shows = isShown ? "days" : "plots";
  setAttribute(at("days"), "aria-pressed", String(isShown));
  const { theme } = document.documentElement.dataset;
  season.show({ view: { ...view, days: isShown }, zone: shownZone(), colours: themeColours(), theme });
}

/** Topics whose channels are shown, not that which is only subtracted. */
function shownTopics() {
  const { subtracted, isSubtractedShown } = session;
  return session.channels.filter((channel) => channel !== subtracted || isSubtractedShown).map(({ info }) => info);
}

/** Show one channel more, and all of them in one panel. */
function overlay() {
  const shown = shownTopics();
  const next = shown.length < BOUNDS.topics ? nextTopic(shown, session.topics) : null;
  if (next === null) notice("No other channel can be shown beside these");
  change({ layout: "over", topics: [...shown, ...(next === null ? [] : [next])].map((info) => session.nameOf(info)) });
}

/** Show the channels less another one; which they are is then no longer left to the page, as that one might be among them. */
function chooseLess(less) {
  change({ less, topics: shownTopics().map((info) => session.nameOf(info)) });
  // Averages that are subtracted are of the same time.
  if (less !== "" && view.holds.includes("mean")) own.resetHolds();
}

/** Let a drag in a waterfall select, once. */
function setSelecting(isOn) {
  isSelecting = isOn;
  setAttribute(at("selecting"), "aria-pressed", String(isOn));
}

/** Ask the server for what is on the screen. */
function ask() {
  const isVisible = document.visibilityState === "visible";
  const { text, left } = session.demand(view, (channel) => panels.shapeOf(channel), isVisible);
  connection.setView(text);
  if (left.length > leftBefore) notice(`${left.length} traces are not shown: the server sends a page at most ${session.limits.streams} streams`);
  leftBefore = left.length;
}

/** Show what is stored of the first channel. */
function showOverview() {
  const [channel] = session.channels;
  const isAsked = session.hello?.has_history === true && document.visibilityState === "visible";
  if (isAsked && channel?.description) overview.ask(channel.info, extentOf(channel.description));
  overviewStrip.show({ newestMs: panels.newestMs(), zone: shownZone(), colours: panels.colours, events: session.events });
}

/** Show what is selected, if anything is. */
function showCard() {
  card.show({ selection: view.selection, zone: shownZone(), hasHistory: session.hello?.has_history === true, channels: session.channels });
}

function showControls() {
  showCard();
  const described = session.channels.map(({ description }) => description).filter(Boolean);
  const own = namedBands([...view.bands, ...prefs.bands], BOUNDS.hertz);
  bandChoice.show({ view, own, highest: limitsOf(described, view.axis).f1 });
  fields.show({ view, range: panels.rangeIn(view), prefs });
  showLess(at("less"), spectraOf(session.topics), { nameOf: (info) => session.nameOf(info), less: view.less });
  for (const [action, name] of [["holdMax", "max"], ["holdMin", "min"], ["holdMean", "mean"]]) {
    for (const button of document.querySelectorAll(`[data-action="${action}"]`)) {
      setAttribute(button, "aria-pressed", String(view.holds.includes(name)));
    }
  }
  const hasReference = panels.channels.some(({ reference }) => reference !== null);
  setAttribute(document.querySelector('[data-action="reference"]'), "aria-pressed", String(hasReference));
  setText(at("pause"), view.t1 === null ? "Pause" : "Live");
  at("live").disabled = shownMs(view) === (session.stored?.t1 ?? null);
  at("layout").value = view.layout;
}

function showTopics() {
  const spectra = spectraOf(session.topics);
  const shown = new Set(shownTopics());
  const silent = silentStates(session);
  silentSaid = JSON.stringify(silent);
  choice.show(spectra.map((info) => ({ name: session.nameOf(info), info, isShown: shown.has(info) })), silent);
  const said = spectra.length > 0 ? session.missing().join(". ") : nothingText();
  control.showTopics(spectra, session.channels[0]?.info ?? null);
  at("nothing").hidden = said === "";
  setText(at("nothing"), said);
}

function nothingText() {
  if (phase.phase !== "open") return "Not connected to the server.";
  const lost = session.endpoints.filter(({ connected }) => connected === false);
  const away = ({ endpoint, why }) => `${endpoint}: ${why || "no connection to the daemon"}`;
  if (session.isArchive) return lost.length > 0 ? lost.map(away).join("; ") : "Nothing is stored here that can be shown.";
  if (lost.length > 0) return `Waiting for ${lost.map(away).join("; ")}`;
  const silent = silentStates(session);
  const named = silent.slice(0, SILENT_NAMED).map(({ source, text }) => `${source}: ${text}`);
  if (silent.length > 0) return [...named, ...(silent.length > SILENT_NAMED ? ["..."] : [])].join("; ");
  return "Waiting for a daemon to list its channels.";
}

/** What the session has heard. */
function changed(what) {
  if (what === "hello") {
    for (const button of ["save-shown", "save-rows"]) at(button).hidden = session.hello.has_history !== true;
    at("control").hidden = session.hello.can_control !== true;
    setText(document.querySelector("h1"), session.hello.program ?? "spectrod");
    at("pause").hidden = session.isArchive;
    at("days").hidden = !session.isArchive;
    setText(at("live"), session.isArchive ? "Newest" : "Live");
  }
  if (what === "topics" || what === "channels" || what === "hello") {
    setView(view);
    showView();
    showTopics();
  }
  // Without channels the state is what there is to say: why a daemon is waited for, or a source.
  if (what === "state" && (spectraOf(session.topics).length === 0 || JSON.stringify(silentStates(session)) !== silentSaid)) showTopics();
  if (what === "descriptions") rest();
  if (what === "descriptions") ask();
  // Rows come now. Whether it has failed is said when a figure is asked for.
  if (what === "descriptions") loadFigures().catch(() => {});
  if (what === "descriptions") showControls();
  if (what === "descriptions") panels.touch();
  if (what === "measured") panels.touchReadings();
  if (what === "values") meters.take(session.newestValues, now());
}

function rowsCame(blocks) {
  session.rows(blocks);
  // A hidden page draws nothing, and must still say that it takes what comes.
  if (document.visibilityState !== "visible") connection.drew();
}

function rowCame(channel, role, row, description) {
  panels.append(channel, role, row, description);
  rest();
}

function phaseChanged(next) {
  phase = next;
  showState();
  askForToken(phase.needsToken);
  showTopics();
}

/** Offer the measurements that there are of the channels on the screen, and those of the link. */
function showLineChoice() {
  const columns = session.levels.columns(session.topics, session.channels.map(({ info }) => info));
  const names = [...new Set([...columns, ...view.lines])];
  lineChoice.show(names.map((name) => ({ name, title: nameText(name), isShown: view.lines.includes(name) })));
  at("no-lines").hidden = names.length > 0;
}

/** Show the one line of state, and what there is to say of each part where its details are open. */
function showState() {
  const groups = healthGroups(session, phase, now());
  const line = stateLine(groups, shownText(), losses, now());
  setText(at("connection"), line.text);
  setAttribute(at("connection"), "title", line.text);
  setAttribute(at("connection"), "data-grade", line.grade);
  // Not each second of a silence, and each message of a loss.
  if (line.about !== stateSaid) announcer.say("state", line.text);
  stateSaid = line.about;
  showHealth(at("status"), joinedGroups(groups));
}

/** What of the time the page shows. */
function shownText() {
  if (session.isArchive) return session.endpoints.map(({ endpoint }) => endpoint).join(", ");
  if (session.channels.length === 0) return "connected";
  const tMs = shownMs(view);
  if (tMs === null) return "live";
  const isPaused = view.t1 !== null && session.channels.some((channel) => channel.isPausedAt(view.t1));
  return `${isPaused ? "paused" : "the past"}, ${formatTime(tMs, shownZone())}`;
}

/** Show a text for a while, beside others that are still shown. */
function notice(text) {
  if (at("notice").hidden) noticed = [];
  noticed = [...noticed.filter((one) => one !== text), text].slice(-NOTICES_MAX);
  setText(at("notice"), noticed.join("; "));
  at("notice").hidden = false;
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => (at("notice").hidden = true), NOTICE_MS);
}

/** Save what is shown now, see `saveShown`. */
function saveNow(kinds) {
  saveShown(kinds, panels, figureForm, () => ({ view, zone: shownZone() })).catch((error) => notice(error.message));
}

/** Save what is stored of the time that is shown, see `savePast`. */
function saveStored(format) {
  savePast(format, base, format === "spd" ? session.channels : panels.channels, panels.scene()).catch((error) => notice(error.message));
}

const own = {
  loudest: toLoudest,
  overlay,
  saveFigure: () => saveNow(["png"]),
  saveLevels: () => (session.hello?.has_history === true ? saveStored("csv") : notice("Spectrogram (CSV): this server keeps no past")),
  help: showHelp,
  wall: () => wall.toggle().catch((error) => notice(`Full screen: ${error.message}`)),
  legend: () => announcer.say("legend", toggleLegend(() => panes.open("options")) ? "Legend open, under Options" : "Legend closed"),
  resetHolds: () => {
    for (const channel of session.channels) {
      connection.reset(channel.info.id);
      channel.holds = {};
    }
    panels.touch();
  },
  reference: () => {
    const had = panels.channels.some(({ reference }) => reference !== null);
    for (const { channel, moment } of panels.moments(view)) channel.keepReference(had ? null : moment.row);
    panels.touch();
    showControls();
  },
};

/** Do an action of `actions.js`, or one of the page's own. */
function act(name) {
  if (own[name]) own[name]();
  else change(panels.act(name, view));
}

function keepPrefs(part) {
  prefs = makePrefs({ ...prefs, ...part });
  writePrefs(storage, prefs);
}

function changePrefs(part) {
  keepPrefs(part);
  applyTheme(prefs.theme);
  restyle();
  showControls();
}

/** Use the colours of the theme. */
function restyle() {
  panels.restyle();
  legend.restyle(document.documentElement.dataset.theme);
}

/** Texts and tables, four times a second: nobody reads faster. */
function showSlowly() {
  for (const channel of session.channels) {
    if (channel.receivedAt !== null && now() - channel.receivedAt > rowsDueMs(channel.description)) channel.fallSilent();
  }
  showState();
  storedEvents.follow(session.storedEvents, (marks, hasMore) => session.events.putStored(marks, hasMore));
  if (view.days) showSeason();
  const clipped = meters.show(session.values, session.topics, { now: now(), nowMs: Date.now(), zone: shownZone(), colours: panels.colours, isPast: view.t1 !== null });
  if (clipped.length > 0) announcer.say("clipping", clipped.join(". "));
  showCard();
  showOverview();
  timeBar.show({ tMs: view.t1 ?? panels.newestMs(), zone: shownZone(), chosen: prefs.zone, ofSource: session.timeZone });
  tables.show({ moments: panels.moments(view), view: atShownTime(view), zone: shownZone(), ...panels.readings(view) });
  if (at("events-box").open) eventList.show(session.events, view, shownZone());
  markCard.show(session.events.selected);
  showLineChoice();
  const news = newsText(session.events.takeNews(), session.events.total, shownZone());
  if (news !== "") announcer.say("events", news);
  setText(at("events-count"), String(session.events.entries.length));
}

const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
let drawnAt = -Infinity;
let drawnView = null;

/** Draw, of who wants less motion once a second, or at once when they change something. */
function frame(time) {
  requestAnimationFrame(frame);
  // Rows are taken even if they are not drawn yet: the server must not think that this page is slow.
  connection.drew();
  if (reducedMotion.matches && view === drawnView && time - drawnAt < REDUCED_MS) return;
  if (view.days && session.isArchive) return;
  drawnAt = time;
  drawnView = view;
  panels.draw(view, now());
}

function listen() {
  document.body.append(card.root, markCard.root);
  at("plots").addEventListener("marks", ({ detail }) => selectMarks(detail));
  nameKeys(document.body);
  for (const button of document.querySelectorAll("[data-action]")) {
    button.addEventListener("click", () => act(button.dataset.action));
  }
  at("pause").addEventListener("click", () => act("pause"));
  at("days").addEventListener("click", () => change({ days: !view.days }));
  at("selecting").addEventListener("click", () => {
    setSelecting(!isSelecting);
    if (isSelecting) panes.closeSheet();
  });
  at("events-box").open = prefs.isEventsOpen;
  at("events-box").addEventListener("toggle", () => keepPrefs({ isEventsOpen: at("events-box").open }));
  at("less").addEventListener("change", () => chooseLess(at("less").value));
  at("layout").addEventListener("change", () => change({ layout: at("layout").value }));
  for (const button of document.querySelectorAll("[data-save]")) {
    const kinds = button.dataset.save.split(" ");
    button.addEventListener("click", () => saveNow(kinds));
  }
  printFigures(at("print"), () => panels.figures(figureForm.viewOf(view), paperColours()));
  for (const [button, format] of [["save-shown", "csv"], ["save-rows", "spd"]]) {
    at(button).addEventListener("click", () => saveStored(format));
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && event.target.closest("dialog") === null && (wall.leave() || panes.closeSheet())) return;
    if (prefs.keysEverywhere || event.key === "?") pressKey(event, act);
  });
  document.addEventListener("visibilitychange", () => {
    ask();
    // Who looks again does not wait for the next attempt.
    if (document.visibilityState === "visible" && phase.phase === "waiting") connection.start();
  });
  document.addEventListener("freeze", () => connection.stop());
  document.addEventListener("resume", () => connection.start());
  window.addEventListener("pagehide", () => connection.stop());
  window.addEventListener("pageshow", (event) => event.persisted && connection.start());
  window.addEventListener("online", () => connection.start());
  takeDropped((file) => viewList.openFile(file).then(notice));
  window.addEventListener("hashchange", () => {
    useZone(zoneOfLink(location.hash));
    setView(viewOfAddress());
    showView();
    showTopics();
  });
}

async function start() {
  applyTheme(prefs.theme);
  restyle();
  watchTheme(restyle);
  const failed = await useLinkToken(base);
  if (failed !== "") notice(failed);
  view = viewOfAddress();
  listen();
  useZone(zoneOfLink(location.hash));
  showView();
  connection.start();
  // Waits for the graphics process, which is busy at the start: not in the task that makes the panels.
  if (forced === null) setTimeout(hasGpu);
  setInterval(showSlowly, SLOW_MS);
  setInterval(() => panels.describe(), SPOKEN_MS * 5);
  requestAnimationFrame(frame);
}

start();
