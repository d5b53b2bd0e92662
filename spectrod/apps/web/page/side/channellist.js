/** The list of channels: groups by source, a box for each channel, and a search field where there are many. */

import { bySource, topicText } from "../link/topics.js";
import { BOUNDS } from "../panel/view.js";
import { element, setText } from "./dom.js";

/** From so many channels on there is a field to search them. */
const SEARCHED_FROM = 8;

/**
 * Channels by source; what all channels of a source share is said once.
 *
 * @param {Array<{name: string, info: object, isShown: boolean}>} topics in their order
 * @param {Array<{endpoint: string, source: string, text: string}>} silent sources without a channel that a daemon describes,
 *   with their state; channels of their recordings are among the topics
 * @returns {Array<{title: string, state: string, items: Array<{name: string, text: string, before: string, label: string, after: string,
 *   isShown: boolean}>}>} `text`: all of a channel's name; `label`: what tells it from others of its group, between what it shares with them;
 *   `state`: of a silent source, else empty
 */
export function channelGroups(topics, silent = []) {
  const hasOneDaemon = new Set([...topics.map(({ info }) => info), ...silent].map(({ endpoint }) => endpoint)).size <= 1;
  const titleOf = ({ source, endpoint }) => (hasOneDaemon ? source : `${source} (${endpoint})`);
  const groups = new Map();
  for (const topic of topics) {
    const key = JSON.stringify([topic.info.endpoint, topic.info.source]);
    groups.set(key, [...(groups.get(key) ?? []), topic]);
  }
  const described = [...groups.values()].map((own) => {
    const { source, endpoint } = own[0].info;
    const isAlike = (name) => own.every(({ info }) => info[name] === own[0].info[name]);
    const after = isAlike("product") ? ` · ${own[0].info.product}` : "";
    const items = own.map(({ name, info, isShown }) => ({ name, isShown, text: topicText(info), before: `${source} · `, label: labelOf(info, isAlike), after }));
    const state = silent.find((one) => one.endpoint === endpoint && one.source === source)?.text ?? "";
    return { endpoint, source, title: titleOf(own[0].info), state, items };
  });
  const isListed = (one) => groups.has(JSON.stringify([one.endpoint, one.source]));
  const others = silent.filter((one) => !isListed(one)).map((one) => ({ ...one, title: titleOf(one), state: one.text, items: [] }));
  if (others.length === 0) return described;
  return [...described, ...others].sort(bySource);
}

function labelOf(info, isAlike) {
  const product = isAlike("product") ? "" : ` · ${info.product}`;
  const kind = !isAlike("kind") && info.kind === "bands" ? " (bands)" : "";
  return `${info.channel}${product}${kind}`;
}

/** Whether a name has all the words of a search, in any case. */
export function isFound(text, search) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return words.every((word) => text.toLowerCase().includes(word));
}

/** The list in the page. */
export class ChannelList {
  #place;
  #change;
  #search = element("input", { type: "search", placeholder: "Find a channel", "aria-label": "Find a channel", maxlength: 200 });
  #note = element("p", { class: "empty", role: "status" });
  #groups = [];
  #key = "";

  /**
   * @param {HTMLElement} place
   * @param {(names: string[]) => void} change
   */
  constructor(place, change) {
    this.#place = place;
    this.#change = change;
    this.#search.addEventListener("input", () => this.#filter());
  }

  /** See `channelGroups`. */
  show(topics, silent = []) {
    const groups = channelGroups(topics, silent);
    const key = JSON.stringify(groups.map(({ title, state, items }) => [title, state !== "", items.map(({ name, label }) => [name, label])]));
    if (key !== this.#key) this.#make(groups);
    this.#key = key;
    groups.forEach(({ state }, k) => setText(this.#groups[k].state, state));
    const shown = topics.filter(({ isShown }) => isShown).length;
    const isFull = shown >= BOUNDS.topics;
    groups.flatMap(({ items }) => items).forEach(({ isShown }, k) => {
      const { input } = this.#boxes[k];
      input.checked = isShown;
      input.disabled = isFull && !isShown;
    });
    setText(this.#note, `${shown} of ${topics.length} shown${isFull ? `, the most at once` : ""}`);
    this.#note.hidden = topics.length < SEARCHED_FROM;
    this.#search.hidden = topics.length < SEARCHED_FROM;
  }

  get #boxes() {
    return this.#groups.flatMap(({ boxes }) => boxes);
  }

  #make(groups) {
    this.#groups = groups.map(({ title, state: said, items }) => {
      const boxes = items.map((item) => this.#makeBox(item));
      const state = element("p", { class: "empty" });
      const content = [...boxes.map(({ root: box }) => box), ...(said === "" ? [] : [state])];
      const root = element("fieldset", {}, element("legend", {}, title), ...content);
      return { title, root, state, boxes };
    });
    this.#place.replaceChildren(this.#search, this.#note, element("div", { class: "channel-groups" }, ...this.#groups.map(({ root }) => root)));
    this.#filter();
  }

  #makeBox({ name, text, before, label, after }) {
    const input = element("input", { type: "checkbox" });
    input.addEventListener("change", () => this.#tell());
    // Who sees the list sees its group; who hears it, or searches it, has the whole name.
    const hidden = (part) => element("span", { class: "hidden" }, part);
    const root = element("label", { title: text }, input, element("span", {}, hidden(before), label, hidden(after)));
    return { name, text, input, root };
  }

  #filter() {
    for (const { title, root, boxes } of this.#groups) {
      for (const box of boxes) box.root.hidden = !isFound(box.text, this.#search.value);
      root.hidden = boxes.length > 0 ? boxes.every((box) => box.root.hidden) : !isFound(title, this.#search.value);
    }
  }

  #tell() {
    this.#change(this.#boxes.filter(({ input }) => input.checked).map(({ name }) => name));
  }
}
