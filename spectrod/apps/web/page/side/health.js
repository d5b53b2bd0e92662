/** The line at the foot of the page: the state of daemons, sources and channels. */

import { element, setAttribute, setText } from "./dom.js";
import { channelFacts, connectionFact, endpointFact, sourceFacts } from "./status.js";
import { TERMS } from "./terms.js";
import { topicTitle } from "../link/topics.js";

/**
 * What there is to say, in groups.
 *
 * @param {import("../link/session.js").Session} session
 * @param {object} phase of the connection
 * @param {number} now [ms]
 * @returns {Array<{title: string, facts: object[]}>}
 */
export function healthGroups(session, phase, now) {
  const groups = [{ title: "", facts: [connectionFact(phase), ...session.endpoints.map(endpointFact)] }];
  const sources = session.sources.filter((one) => session.channels.some((channel) => session.sourceOf(channel) === one));
  const isAway = ({ endpoint }) => session.endpoints.some((one) => one.endpoint === endpoint && endpointFact(one).grade === "bad");
  for (const source of sources) groups.push({ title: source.source, facts: sourceFacts(source, isAway(source)) });
  for (const channel of session.channels) groups.push({ title: topicTitle(channel.info), facts: channelFacts(channel, now) });
  return groups;
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
