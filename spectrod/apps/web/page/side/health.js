/** The details of the state: daemons, sources and channels. */

import { element, setAttribute, setText } from "./dom.js";
import { channelFacts, connectionFact, endpointFact, sourceFacts } from "./status.js";
import { TERMS } from "./terms.js";
import { titleOfAll, topicTitle } from "../link/topics.js";

/**
 * What there is to say, in groups.
 *
 * @param {import("../link/session.js").Session} session
 * @param {object} phase of the connection
 * @param {number} now [ms]
 * @returns {Array<{title: string, endpoint?: string, info?: object, facts: object[]}>} `endpoint`: of whose daemon;
 *   `info`: the topic of a channel
 */
export function healthGroups(session, phase, now) {
  const groups = [{ title: "", facts: [connectionFact(phase), ...session.endpoints.map(endpointFact)] }];
  const sources = session.sources.filter((one) => session.channels.some((channel) => session.sourceOf(channel) === one));
  for (const source of sources) groups.push({ title: source.source, endpoint: source.endpoint, facts: sourceFacts(source, isAway(session, source)) });
  for (const channel of session.channels) {
    const { info } = channel;
    groups.push({ title: topicTitle(info), endpoint: info.endpoint, info, facts: channelFacts(channel, now) });
  }
  const isSaid = (one) => sources.some(({ endpoint, source }) => endpoint === one.endpoint && source === one.source);
  for (const one of silentStates(session)) {
    const { source, endpoint, text } = one;
    if (!isSaid(one)) groups.push({ title: source, endpoint, facts: [{ name: "state", text, grade: "notice" }] });
  }
  return groups;
}

/** Whether the daemon of a source is away. */
function isAway({ endpoints }, { endpoint }) {
  return endpoints.some((one) => one.endpoint === endpoint && endpointFact(one).grade === "bad");
}

/**
 * Sources without a channel, each with the text of its state.
 *
 * @param {import("../link/session.js").Session} session
 * @returns {Array<{endpoint: string, source: string, text: string}>}
 */
export function silentStates(session) {
  return session.silentSources.map((one) => {
    const [{ text }] = sourceFacts(one, isAway(session, one));
    return { endpoint: one.endpoint, source: one.source, text };
  });
}

/** Groups in which channels of which all the same is to be said are one. */
export function joinedGroups(groups) {
  const alike = new Map();
  for (const [k, group] of groups.entries()) {
    const key = JSON.stringify(group.info === undefined ? k : group.facts);
    alike.set(key, [...(alike.get(key) ?? []), group]);
  }
  return [...alike.values()].map((same) => (same.length === 1 ? same[0] : { ...same[0], title: titleOfAll(same.map(({ info }) => info)) }));
}

/** Show groups in a place; elements that are there are used again. */
export function showHealth(place, groups) {
  while (place.children.length > groups.length) place.lastElementChild.remove();
  groups.forEach(({ title, facts }, k) => {
    const list = place.children[k] ?? place.appendChild(element("dl"));
    setAttribute(list, "aria-label", title || "connections");
    const all = title === "" ? facts : [{ name: title, text: "", grade: null }, ...facts];
    while (list.children.length > all.length) list.lastElementChild.remove();
    all.forEach((fact, j) => showFact(list.children[j] ?? makeFact(list), fact));
  });
}

function makeFact(list) {
  return list.appendChild(element("div", {}, element("dt"), element("dd")));
}

function showFact(item, { name, text, grade }) {
  const [term, detail] = item.children;
  setText(term, name);
  setAttribute(term, "title", TERMS[name] ?? null);
  setText(detail, text);
  setAttribute(detail, "data-grade", grade === "good" ? null : grade);
}
