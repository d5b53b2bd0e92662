/**
 * All that the page has been told: topics, rows, states, events, values. Without a document, so that
 * Node's tests can talk to it as a server does.
 */

import { Channel, RING_ROWS } from "../rows/channel.js";
import { streamRole, streamsWanted } from "./demand.js";
import { breakText, EventLog } from "./events.js";
import { LevelSeries } from "../rows/levelseries.js";
import { restOf, storedSpan } from "../rows/stored.js";
import { isZone } from "../plot/time.js";
import { ambiguousNames, bySource, chosenTopics, findTopic, inOrder, missingText, silentText, spectraOf, topicName } from "./topics.js";

const CHANNELS_MAX = 8;
const VALUES_KEPT = 64;
/** States of sources that are not listed without a channel: one that runs is just being described, one that stopped is removed. */
const UNLISTED = Object.freeze(["running", "stopped"]);
/** What a server of this version allows at least; its hello says more. */
const LIMITS = Object.freeze({ streams: 8, values: 4096, rows_s: 50 });

/**
 * @typedef {object} Listeners
 * @property {(what: string) => void} changed `hello`, `topics`, `channels`, `descriptions`, `state`, `events`, `values`, `measured`
 * @property {(channel: Channel, role: string, row: object, description: object) => void} row
 * @property {(text: string) => void} refused
 */
export class Session {
  hello = null;
  topics = [];
  endpoints = [];
  sources = [];
  /** Topics on the screen, by place. */
  channels = [];
  /** The one of them whose levels are subtracted from the others', or null; whether it was chosen itself, too. */
  subtracted = null;
  isSubtractedShown = false;
  events = new EventLog();
  /** Version of the events of an archive; 0 without any. */
  storedEvents = 0;
  /** Measurements over time. */
  levels = new LevelSeries();
  /** Newest `values` text of each topic, by its number. */
  values = new Map();
  /** The newest of them, of whichever topic; null before the first. */
  newestValues = null;
  #descriptions = new Map();
  #names = [];
  #less = "";
  #stateMs = NaN;
  #early = []; // intervals of topics that are not listed yet
  #ambiguous = new Set();
  #listeners;
  #now;

  /** @param {{listeners: Listeners, now: () => number}} given */
  constructor({ listeners, now }) {
    this.#listeners = listeners;
    this.#now = now;
  }

  get limits() {
    return { ...LIMITS, ...(this.hello?.limits ?? {}) };
  }

  /** Whether the server shows archives, and no daemon. */
  get isArchive() {
    return this.hello?.is_archive === true;
  }

  /** Span of what an archive has of the topics on the screen [ms], or where those of daemons rest; null without. */
  get stored() {
    return storedSpan(this.channels.map(({ info }) => info)) ?? restOf(this.channels);
  }

  /** Time zone of the first source on the screen that says one this browser knows; empty: none. */
  get timeZone() {
    return this.channels.map(({ info }) => info.time_zone ?? "").find(isZone) ?? "";
  }

  /** Take a text of the server; one that is not known is of a later version, and left alone. */
  text(message) {
    const take = {
      hello: () => this.#greet(message),
      topics: () => this.#list(message),
      stream: () => this.#describe(message),
      state: () => this.#state(message),
      event: () => this.events.take(message),
      values: () => this.#value(message),
      measured: () => this.#measure(message),
      refused: () => this.#listeners.refused(`${message.what}: ${message.why}`),
    }[message.op];
    if (take === undefined) return;
    take();
    const told = { event: "events", stream: "descriptions" }[message.op] ?? message.op;
    if (message.op !== "refused") this.#listeners.changed(told);
  }

  /**
   * Show these topics; an empty list leaves the choice to the page.
   *
   * @param {string[]} names
   * @param {string} less name of the topic whose levels are subtracted; empty: none
   */
  select(names, less = "") {
    [this.#names, this.#less] = [names, less];
    const named = chosenTopics(names, this.topics);
    if (named.length === 0) return;
    const subtracted = findTopic(less, spectraOf(this.topics));
    const chosen = subtracted === undefined || named.includes(subtracted) ? named : [...named.slice(0, CHANNELS_MAX - 1), subtracted];
    const kept = this.channels.filter(({ info }) => chosen.includes(info));
    const before = this.channels;
    this.channels = chosen.map((info) => kept.find((channel) => channel.info === info) ?? this.#makeChannel(info, kept));
    const [lessBefore, wasShown] = [this.subtracted, this.isSubtractedShown];
    this.subtracted = this.channels.find(({ info }) => info === subtracted) ?? null;
    this.isSubtractedShown = named.includes(subtracted);
    const isLessSame = lessBefore === this.subtracted && wasShown === this.isSubtractedShown;
    const isSame = isLessSame && before.length === this.channels.length && before.every((one, k) => one === this.channels[k]);
    if (!isSame) this.#listeners.changed("channels");
  }

  #makeChannel(info, kept) {
    const used = new Set(kept.map(({ place }) => place));
    let place = 0;
    while (used.has(place)) place += 1;
    const channel = new Channel(info, place, RING_ROWS);
    kept.push(channel);
    return channel;
  }

  #greet(hello) {
    this.hello = hello;
    // Numbers of streams begin again with each connection; rows that were drawn keep their own descriptions.
    this.#descriptions.clear();
    this.#early = [];
  }

  /** Topics keep their names when the server starts again and gives them other numbers. */
  #list({ topics }) {
    const before = new Set(this.topics.map(({ endpoint, topic }) => `${endpoint} ${topic}`));
    const added = spectraOf(topics).filter(({ endpoint, topic, is_silent }) => !is_silent && !before.has(`${endpoint} ${topic}`));
    this.topics = inOrder(topics);
    this.#ambiguous = ambiguousNames(topics);
    for (const message of this.#early.splice(0)) this.#takeLevels(message);
    for (const channel of this.channels) {
      const { topic, endpoint } = channel.info;
      const found = topics.find((one) => one.topic === topic && one.endpoint === endpoint);
      channel.info = found ?? channel.info;
      channel.gone = found === undefined ? missingText(topic, topics) : "";
      if (found === undefined) channel.forgetMeasured();
      channel.noteNewer(added, this.#now());
    }
    this.select(this.#names, this.#less);
  }

  #describe(description) {
    const channel = this.#channelOf(description.id);
    if (channel === undefined || channel.info.topic !== description.topic) return;
    // One without a row says nothing of the rows that are here.
    if (description.newest_ms !== undefined && channel.receivedAt !== null) return;
    const { role } = streamRole(description.id);
    this.#descriptions.set(description.generation & 0xffff, { description: Object.freeze(description), channel, role });
    channel.describe(role, description);
    if (this.#descriptions.size > 256) this.#descriptions.delete(this.#descriptions.keys().next().value);
  }

  /** Take the blocks of a binary message; rows of a stream that is no longer shown are left out. */
  rows(blocks) {
    for (const { generation, rows, clientDropped } of blocks) {
      const found = this.#descriptions.get(generation);
      if (found === undefined || !this.channels.includes(found.channel)) continue;
      const { channel, role, description } = found;
      channel.describe(role, description);
      channel.dropped(role, clientDropped);
      for (const row of rows) this.#take(channel, role, row, description);
    }
  }

  #take(channel, role, row, description) {
    const { source } = channel.info;
    const notice = (kind) => {
      this.events.note(kind, source, row.tMs, breakText(kind, row));
      this.#listeners.changed("events");
    };
    channel.take(role, row, description, this.#now(), notice);
    this.#listeners.row(channel, role, row, description);
  }

  #state({ endpoints, sources, now_ms, events_version: version }) {
    this.storedEvents = version ?? 0;
    this.#noteClipping(sources ?? [], now_ms);
    this.endpoints = endpoints ?? [];
    this.sources = sources ?? [];
    this.#stateMs = now_ms;
  }

  /** Note sources that have clipped more samples than in the state before. */
  #noteClipping(sources, nowMs) {
    for (const { endpoint, source, clipped_samples: total } of sources) {
      const before = this.sources.find((one) => one.endpoint === endpoint && one.source === source);
      const count = total - (before?.clipped_samples ?? total);
      if (count > 0 && nowMs > this.#stateMs) this.events.noteClipping(source, { t0: this.#stateMs, t1: nowMs }, { count, total });
    }
  }

  #value(message) {
    this.values.delete(message.topic_id);
    this.values.set(message.topic_id, message);
    this.newestValues = message;
    this.#takeLevels(message);
    if (this.values.size > VALUES_KEPT) this.values.delete(this.values.keys().next().value);
  }

  /** Take an interval of a topic; the first of one may come before the list that has it. */
  #takeLevels(message) {
    const info = this.topics.find(({ id }) => id === message.topic_id);
    if (info === undefined) this.#early = [...this.#early, message].slice(-VALUES_KEPT);
    else this.levels.take(info, message);
  }

  #measure(measured) {
    this.#channelOf(measured.id)?.measure(measured);
  }

  #channelOf(id) {
    const { place } = streamRole(id);
    return this.channels.find((channel) => channel.place === place);
  }

  /** Texts about topics that are asked for and not there; none before the first list. */
  missing() {
    if (this.topics.length === 0) return [];
    const shown = this.channels.map(({ info }) => this.nameOf(info));
    const asked = this.#less === "" ? this.#names : [...this.#names, this.#less];
    const names = asked.filter((name) => findTopic(name, spectraOf(this.topics)) === undefined && !shown.includes(name));
    const silent = new Set(this.silentSources.map(({ source }) => source));
    const text = (name) => (silent.has(name.split("/")[1]) ? silentText(name) : missingText(name, this.topics));
    return names.map(text);
  }

  /** Sources without a channel that a daemon describes, of a `state` text: it has had no sample of them since it started. */
  get silentSources() {
    const key = ({ endpoint, source }) => JSON.stringify([endpoint, source]);
    const described = new Set(spectraOf(this.topics).filter(({ is_silent }) => !is_silent).map(key));
    return this.sources.filter((one) => !UNLISTED.includes(one.state) && !described.has(key(one))).sort(bySource);
  }

  /** State of a channel's source, or null. */
  sourceOf({ info }) {
    return this.sources.find((one) => one.endpoint === info.endpoint && one.source === info.source) ?? null;
  }

  /** Keep what there is now, for a view that leaves the live rows for a time [ms]. */
  keepMoment(toMs) {
    for (const channel of this.channels) channel.keepMoment(toMs);
  }

  /** Name of a topic in a view. */
  nameOf(info) {
    return topicName(info, this.#ambiguous);
  }

  /** Time of the newest row of an endpoint's topics on the screen [ms], else where they rest, or null; of archives the end of all. */
  newestMs(endpoint) {
    if (this.isArchive) return this.stored?.t1 ?? null;
    const own = this.channels.filter(({ info }) => info.endpoint === endpoint);
    const times = own.map((channel) => channel.newestMs).filter((tMs) => tMs !== null);
    return times.length > 0 ? Math.max(...times) : (restOf(own)?.t1 ?? null);
  }

  /**
   * The `view` text for what is on the screen.
   *
   * @param {object} view
   * @param {(channel: Channel) => {f0: number, f1: number, axis: string, widthCss: number, breadthCss: number, lengthPx: number,
   *   ratio: number}} shapeOf how a topic is shown
   * @param {boolean} isVisible
   */
  demand(view, shapeOf, isVisible) {
    const shown = this.channels.map((channel) => ({
      place: channel.place,
      topicId: channel.info.id,
      isFine: channel.isFine,
      ...shapeOf(channel),
    }));
    const { streams, left } = streamsWanted(shown, { view, limits: this.limits, isVisible });
    const why = `the server sends a page at most ${this.limits.streams} streams`;
    for (const channel of this.channels) {
      channel.setUnsent(left.filter(({ place }) => place === channel.place).map(({ role }) => role), why);
    }
    return { text: { visible: isVisible, streams }, left };
  }
}
