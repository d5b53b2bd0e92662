/** The panels on the screen: one for each topic side by side, or one with all of them. */

import { actionIn, ACTIONS, cursorAt, movedInTime, panned, zoomed, zoomedInTime } from "./actions.js";
import { placeCursor, snapToBin } from "./cursor.js";
import { themeColours } from "../side/dom.js";
import { SurfaceInput } from "./input.js";
import { Panel } from "./panel.js";
import { columnsOf } from "./columns.js";
import { centred, linked, rangeOf, withRange } from "./ranges.js";
import { DifferenceChannel, shownChannels } from "../rows/differencechannel.js";
import { RING_ROWS } from "../rows/channel.js";
import { LevelFollower } from "../rows/follow.js";
import { formatHertz, formatLevel } from "../plot/time.js";

/** Box between two places. */
function boxBetween(one, other) {
  const [t0, t1] = [one.tMs, other.tMs].sort((a, b) => a - b);
  const [f0, f1] = [one.hz, other.hz].sort((a, b) => a - b);
  return { t0, t1, f0, f1 };
}

export class Panels {
  #place;
  #given;
  #panels = [];
  #colours = null;
  #active = null;
  #differences = [];
  #followers = new Map(); // of levels, by the keys of ranges

  /**
   * @param {HTMLElement} place
   * @param {object} given `session`, `change(part of a view)`, `act(name)`, `link(isLinked)`, `view()`, `zone()`,
   *   `resized()`, `past` (a `History`), `cursorRows` (`CursorRows`), `traces` (`StoredTraces`), `forced` (renderer of the waterfalls, or null)
   */
  constructor(place, given) {
    this.#place = place;
    this.#given = given;
    new ResizeObserver(() => this.#fit()).observe(place.parentElement);
  }

  /** Put the panels into as many columns as leaves them the most room. */
  #fit() {
    const { clientWidth: width, clientHeight: height } = this.#place.parentElement;
    this.#place.style.setProperty("--columns", String(columnsOf(this.#panels.length, { width, height })));
  }

  /** Make the panels that the view and the session's channels ask for; those that fit are kept. */
  arrange(view) {
    const shown = this.#shownChannels();
    const groups = (view.layout === "over" ? shown : shown.flat().map((one) => [one])).filter(({ length }) => length > 0);
    const old = this.#panels;
    const isSame = (panel, group) => panel.channels.length === group.length && group.every((one, k) => panel.channels[k] === one);
    this.#panels = groups.map((group) => old.find((panel) => isSame(panel, group)) ?? this.#make(group));
    const gone = old.filter((panel) => !this.#panels.includes(panel));
    for (const panel of gone) panel.destroy();
    const roots = this.#panels.map(({ root }) => root);
    if (roots.some((root, k) => this.#place.children[k] !== root)) this.#place.replaceChildren(...roots);
    this.#fit();
    if (!this.#panels.includes(this.#active)) this.#active = this.#panels[0] ?? null;
    for (const panel of this.#panels) panel.arrange(view);
  }

  /** Channels to show, of differences those that were there before, with their rows. */
  #shownChannels() {
    const found = (a, b) => this.#differences.find((one) => one.isOf(a, b)) ?? new DifferenceChannel(a, b, RING_ROWS);
    const shown = shownChannels(this.#given.session, found);
    this.#differences = shown.flat().filter((channel) => channel instanceof DifferenceChannel);
    for (const difference of this.#differences) difference.follow();
    return shown;
  }

  /** Channels that panels show, in the order of the session. */
  get channels() {
    return this.#panels.flatMap((panel) => panel.channels);
  }

  #make(group) {
    const { session, resized, forced, cursorRows, traces } = this.#given;
    const panel = new Panel(group, { session, forced, cursorRows, traces, onResize: resized, levels: (own) => this.#levelActions(own) });
    new SurfaceInput(panel.surface, this.#gestures(panel));
    panel.surface.addEventListener("focus", () => (this.#active = panel));
    return panel;
  }

  /** What a panel's bar of levels does. */
  #levelActions(panel) {
    const { act, change, link, view } = this.#given;
    const active = () => (this.#active = panel);
    return {
      setRange: (range) => {
        active();
        change(this.#rangePart(view(), range));
      },
      link: () => {
        active();
        link(!view().isLinked);
      },
      act: (name) => {
        active();
        act(name);
      },
    };
  }

  /** Part of a view in which the active panel has another range of levels, and those that are linked with it; null: automatic. */
  #rangePart(view, range) {
    const keys = this.#panels.map((panel) => panel.levelKey(view));
    const { isDifference, levels } = this.#active;
    return withRange(view, keys, this.#active.levelKey(view), range !== null && isDifference ? centred(range, levels) : range);
  }

  /** Part of a view that links the ranges of panels, or parts them. */
  linkPart(view, isLinked) {
    const others = this.#panels.filter((panel) => panel !== this.#active);
    const panels = this.#active === null ? [] : [this.#active, ...others];
    return linked(view, isLinked, panels.map((panel) => panel.levelsOf));
  }

  /** Part of a view with another range of the active panel; nothing without panels. */
  rangePart(view, range) {
    return this.#active === null ? {} : this.#rangePart(view, range);
  }

  /** The active panel's first channel with what a view shows of it, and its unit and reference; null without panels. */
  activeMoment(view) {
    if (this.#active === null) return null;
    const [channel] = this.#active.channels;
    return { channel, moment: this.#active.momentOf(channel, view), ...this.#active.levelsOf };
  }

  /** Range that a view gives the active panel, or null: automatic. */
  rangeIn(view) {
    return this.#active === null ? null : rangeOf(view, this.#active.levelKey(view));
  }

  /** Levels of each panel: those that share a range follow what all of them show. */
  #levels(view, now) {
    const keys = this.#panels.map((panel) => panel.levelKey(view));
    for (const key of this.#followers.keys()) if (!keys.includes(key)) this.#followers.delete(key);
    return keys.map((key) => {
      const sharing = this.#panels.filter((_, k) => keys[k] === key);
      if (!this.#followers.has(key)) this.#followers.set(key, new LevelFollower(sharing[0].isDifference));
      const shown = () => sharing.flatMap((panel) => panel.shownLevels(view));
      return this.#followers.get(key).levels(view, rangeOf(view, key), now, shown);
    });
  }

  /** What gestures on a panel do. */
  #gestures(panel) {
    const { change, view } = this.#given;
    const scene = () => panel.scene(view());
    const hertz = (at) => panel.axis.toHertz(panel.toneAt(at));
    const active = () => (this.#active = panel);
    let before = {};
    let corner = null;
    const zoom = (factor, at) => change(zoomed(scene(), factor, panel.toneAt(at)));
    const zoomTime = (factor, at) => change(zoomedInTime(scene(), factor, panel.timeShare(at)));
    return {
      zoom,
      zoomTime,
      stretch: (factors, at) => {
        const [tone, time] = panel.isUprightAt(at) ? [factors.y, factors.x] : [factors.x, factors.y];
        if (tone !== null) zoom(tone, at);
        if (time !== null) zoomTime(time, at);
      },
      drag: (way, at) => {
        const { tone, share } = panel.wayAt(way, at);
        change({ ...panned(scene(), -tone), ...(share === 0 ? {} : movedInTime(scene(), share * view().span)) });
      },
      tap: (at, isNew) => {
        const { row } = scene();
        const hz = row === null ? hertz(at) : snapToBin(hertz(at), row.description);
        const { cursors, times } = view();
        before = { cursors, times };
        const tMs = panel.timeAt(at);
        if (tMs === null) change({ cursors: placeCursor(cursors, hz, isNew) });
        else change(cursorAt(scene(), { hz, tMs, isSecond: isNew }));
      },
      // Its first tap was taken for a cursor's.
      doubleTap: () => change({ f0: null, f1: null, ...before }),
      select: (from, to) => {
        active();
        // What was under the pointer at first stays a corner, while a live waterfall goes on.
        if (corner === null || corner.x !== from.x || corner.y !== from.y) corner = { ...from, place: panel.placeAt(from) };
        if (corner.place === null) change({ band: [from.x, to.x].sort((a, b) => a - b).map((x) => hertz({ x, y: from.y })) });
        else change({ selection: boxBetween(corner.place, panel.placeAt(to, corner.place.strip)) });
      },
      selected: () => {
        corner = null;
        this.#given.selected();
      },
      isSelecting: this.#given.isSelecting,
      point: (at) => panel.point(at, view(), this.#given.zone()),
      act: (name) => {
        this.#active = panel;
        this.#given.act(name);
      },
    };
  }

  /** The scene of the panel that had the focus last. */
  scene() {
    const view = this.#given.view();
    if (this.#active !== null) return this.#active.scene(view);
    throw new Error("there is no panel");
  }

  /** Part of a view that an action makes; nothing without panels or for a name that is none. */
  act(name, view) {
    if (this.#active === null || ACTIONS[name] === undefined) return {};
    const { lo, hi, ...part } = ACTIONS[actionIn(name, view)](this.#active.scene(view));
    return lo === undefined ? part : { ...part, ...this.#rangePart(view, lo === null ? null : { lo, hi }) };
  }

  append(channel, role, row, description) {
    const panel = this.#panelOf(channel);
    if (panel?.channels.includes(channel)) panel.append(channel, role, row, description);
    if (role !== "waterfall") this.#subtractNewest(channel, role);
  }

  #subtractNewest(channel, role) {
    for (const one of this.#differences.filter((difference) => difference.has(channel) && !difference.unsent.has(role))) {
      if (one.subtractNewest(role)) this.#panelOf(one).append(one, role);
    }
  }

  /** Subtract the rows that have come. */
  #subtract() {
    for (const difference of this.#differences) {
      difference.follow();
      const rows = difference.subtract();
      for (const row of rows) this.#panelOf(difference).append(difference, "waterfall", row, row.description);
    }
  }

  shapeOf(channel) {
    return this.#panelOf(channel).shapeOf(this.#given.view(), channel);
  }

  /** The panel of a channel; of one that is only subtracted, or subtracted from, that of a difference. */
  #panelOf(channel) {
    const difference = this.#differences.find((one) => one.has(channel));
    return [channel, difference].map((one) => this.#panels.find((panel) => panel.channels.includes(one))).find(Boolean);
  }

  /** Draw all again: view or colours have changed. */
  touch() {
    for (const panel of this.#panels) panel.touch();
  }

  /** Show new measurements. */
  touchReadings() {
    for (const panel of this.#panels) panel.touchReadings();
  }

  /** Read the colours of the style sheet again. */
  restyle() {
    this.#colours = themeColours();
    this.touch();
  }

  /** Colours of the style sheet, see `themeColours`. */
  get colours() {
    this.#colours ??= themeColours();
    return this.#colours;
  }

  draw(view, now) {
    const { colours } = this;
    const zone = this.#given.zone();
    const { session } = this.#given;
    const past = session.hello?.has_history ? this.#given.past : null;
    this.#subtract();
    const levels = this.#levels(view, now);
    const hasOthers = this.#panels.length > 1;
    this.#panels.forEach((panel, k) => panel.draw({ view, now, colours, zone, levels: levels[k], hasOthers, past }));
    past?.settle();
  }

  /** Time of the newest row of all panels, or null. */
  newestMs() {
    const times = this.#panels.map((panel) => panel.newestMs()).filter((tMs) => tMs !== null);
    return times.length > 0 ? Math.max(...times) : null;
  }

  /** What a view shows of each channel, or of those of the active panel, in the session's order: a list of `{channel, moment}`. */
  moments(view, isActiveOnly = false) {
    const channels = this.channels.filter((channel) => !isActiveOnly || this.#panelOf(channel) === this.#active);
    return channels.map((channel) => ({ channel, moment: this.#panelOf(channel).momentOf(channel, view) }));
  }

  /** What `figureOf` takes of all panels, or of the active one, in some colours. */
  figures(view, colours, isActiveOnly = false) {
    const panels = this.#panels.filter((panel) => !isActiveOnly || panel === this.#active);
    return panels.map((panel) => panel.figure(view, { zone: this.#given.zone(), colours }));
  }

  /** Readings of the cursors in the active panel, for the tables. */
  readings(view) {
    const panel = this.#active;
    const channel = panel?.channels[0];
    if (channel === undefined) return { readings: [], harmonics: [], unit: "dB", binHz: 0 };
    const { unit = "dB", bin_hz: binHz = 0 } = channel.description ?? {};
    return { readings: panel.readings(channel, view), harmonics: panel.harmonics(channel, view), unit, binHz };
  }

  /** Say in words what each panel shows. */
  describe() {
    const view = this.#given.view();
    for (const panel of this.#panels) panel.describe(describeScene(panel, panel.moments(view)[0]));
  }
}

function describeScene({ axis, levels, channels }, { peaks: [peak] }) {
  const { unit = "dB" } = channels[0].description ?? {};
  const strongest = peak ? ` Strongest peak ${formatHertz(peak.hz)} at ${formatLevel(peak.level, unit)}.` : "";
  const range = `${formatHertz(axis.f0)} to ${formatHertz(axis.f1)}, ${formatLevel(levels.lo, unit, 0)} to ${formatLevel(levels.hi, unit, 0)}.`;
  return range + strongest;
}
