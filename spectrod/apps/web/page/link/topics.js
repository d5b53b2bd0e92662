/** Names of topics in a view, and which are shown when it names none. */

const SPECTRA = Object.freeze(["spec", "bands"]);
const FIRST_SHOWN = 2;
/** Topics that are named to who asks for one that is not there. */
const NAMED_MAX = 6;

/** Topics that have a spectrum, which a panel can draw. */
export const spectraOf = (topics) => topics.filter(({ kind }) => SPECTRA.includes(kind));

/** Topics of measurements, whose values stand beside the plots. */
export const measurementsOf = (topics) => topics.filter(({ kind }) => !SPECTRA.includes(kind));

/**
 * Topics by source, spectra before bands, then by product; channels in the order of the configuration: numbers grow as
 * daemons describe their topics, source by source and channel by channel.
 */
export function inOrder(topics) {
  const firsts = new Map();
  for (const info of topics) for (const key of groupsOf(info)) firsts.set(key, Math.min(firsts.get(key) ?? Infinity, info.id));
  const placeOf = (info) => {
    const [endpoint, source] = groupsOf(info).map((key) => firsts.get(key));
    return [endpoint, source, [...SPECTRA, info.kind].indexOf(info.kind), info.product, info.id];
  };
  const places = new Map(topics.map((info) => [info, placeOf(info)]));
  return [...topics].sort((a, b) => compare(places.get(a), places.get(b)));
}

/** Groups that a topic is in: those of its daemon and its source. */
function groupsOf({ endpoint, source }) {
  return [[endpoint], [endpoint, source]].map((names) => JSON.stringify(names));
}

function compare(a, b) {
  const k = a.findIndex((value, n) => value !== b[n]);
  if (k < 0) return 0;
  return a[k] < b[k] ? -1 : 1;
}

/** Topics that more than one daemon has; looked up for each of thousands of topics, so made once. */
export function ambiguousNames(topics) {
  const first = new Map();
  const found = new Set();
  for (const { topic, endpoint } of topics) {
    if (!first.has(topic)) first.set(topic, endpoint);
    else if (first.get(topic) !== endpoint) found.add(topic);
  }
  return found;
}

/** Name of a topic in a view: with its endpoint if it is ambiguous. */
export function topicName({ topic, endpoint }, ambiguous) {
  return ambiguous.has(topic) ? `${topic}@${endpoint}` : topic;
}

/** Topic of a name, or undefined. */
export function findTopic(name, topics) {
  return topics.find((info) => info.topic === name || `${info.topic}@${info.endpoint}` === name);
}

/**
 * Why a topic that is asked for is not shown, with what there is instead.
 *
 * @param {string} name of a topic
 * @param {object[]} topics that there are
 */
export function missingText(name, topics) {
  const [, source = "", channel = ""] = name.split("/");
  const spectra = spectraOf(topics);
  const near = [({ source: s, channel: c }) => s === source && c === channel, ({ source: s }) => s === source, () => true]
    .map((isNear) => spectra.filter(isNear))
    .find((found) => found.length > 0);
  const listed = (near ?? []).slice(0, NAMED_MAX).map(topicText).join("; ");
  const more = (near ?? []).length > NAMED_MAX ? "; ..." : "";
  return `${nameText(name)}: there is no such channel now${listed === "" ? "" : `; there is: ${listed}${more}`}`;
}

/** A name as a title where it has the form of one. */
function nameText(name) {
  const [kind, source, channel, product] = name.split("/");
  return product === undefined ? name : topicText({ kind, source, channel, product });
}

/** Title of a topic, with its kind if that is not the usual one. */
export function topicText(info) {
  return `${topicTitle(info)}${info.kind === "bands" ? " (bands)" : ""}`;
}

/** Title of a topic for a person. */
export function topicTitle({ source, channel, product }) {
  return `${source} · ${channel} · ${product}`;
}

/** Channels that a title of several names. */
const TITLED_MAX = 4;

/** Title of several topics, which says once what they share. */
export function titleOfAll(topics) {
  const shared = (name) => topics.every((info) => info[name] === topics[0][name]);
  const isOneSource = shared("source") && shared("endpoint");
  const own = ({ source, channel, product }) => [isOneSource ? "" : source, channel, shared("product") ? "" : product].filter(Boolean).join(" · ");
  const named = topics.slice(0, TITLED_MAX).map(own).join(", ");
  const more = topics.length > TITLED_MAX ? ` and ${topics.length - TITLED_MAX} more` : "";
  return [isOneSource ? topics[0].source : "", `${named}${more}`, shared("product") ? topics[0].product : ""].filter(Boolean).join(" · ");
}

/** Topics to show: those that the view names and that there are; else the first source's first channels. */
export function chosenTopics(names, topics) {
  const spectra = spectraOf(topics);
  if (names.length > 0) {
    return [...new Set(names.map((name) => findTopic(name, spectra)).filter(Boolean))];
  }
  const first = spectra.find(({ kind }) => kind === "spec") ?? spectra[0];
  const isLike = (info) => ["endpoint", "source", "product", "kind"].every((name) => info[name] === first[name]);
  return spectra.filter(isLike).slice(0, FIRST_SHOWN);
}
