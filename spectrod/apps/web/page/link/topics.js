/** Names of topics in a view, and which are shown when it names none. */

const SPECTRA = Object.freeze(["spec", "bands"]);
const FIRST_SHOWN = 2;
/** Topics that are named to who asks for one that is not there. */
const NAMED_MAX = 6;

/** Topics that have a spectrum, which a panel can draw. */
export const spectraOf = (topics) => topics.filter(({ kind }) => SPECTRA.includes(kind));

/** Topics of measurements, whose values stand beside the plots. */
export const measurementsOf = (topics) => topics.filter(({ kind }) => !SPECTRA.includes(kind));

/** Names as people sort them: mic2 before mic10. */
const NAMES = new Intl.Collator("en", { numeric: true });

/** Order of sources: by daemon, then by name. */
export const bySource = (a, b) => NAMES.compare(a.endpoint, b.endpoint) || NAMES.compare(a.source, b.source);

/**
 * Topics by source, spectra before bands, then by product; channels in the order of the configuration: numbers grow as a
 * daemon describes a source, channel by channel. Sources go by name: which of them is heard first differs from start to start.
 */
export function inOrder(topics) {
  const place = ({ kind }) => [...SPECTRA, kind].indexOf(kind);
  return [...topics].sort((a, b) =>
    bySource(a, b) || place(a) - place(b)
    || NAMES.compare(a.product, b.product) || a.id - b.id);
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

/** Why a topic is not shown whose source has not had a sample yet. */
export const silentText = (name) => `${nameText(name)}: no sample has come from this source since its daemon started`;

/** A name as a title where it has the form of one. */
function nameText(name) {
  const [kind, source, channel, product] = name.split("/");
  return product === undefined ? name : topicText({ kind, source, channel, product });
}

/** Title of a topic, with its kind if that is not the usual one. */
export function topicText(info) {
  return `${topicTitle(info)}${info.kind === "bands" ? " (bands)" : ""}`;
}

/** Title of a topic for a person, with that of the one whose levels are subtracted. */
export function topicTitle({ source, channel, product, less }) {
  const title = `${source} · ${channel} · ${product}`;
  return less === undefined ? title : `${title} less ${topicTitle(less)}`;
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

/**
 * The topic after the last of those that are shown, of the same kind and product, or null.
 *
 * @param {readonly object[]} shown
 * @param {readonly object[]} topics in their order, which begins again at its end
 */
export function nextTopic(shown, topics) {
  const spectra = spectraOf(topics);
  const last = shown.at(-1);
  const from = spectra.indexOf(last) + 1;
  const isNext = (info) => !shown.includes(info) && (last === undefined || ["kind", "product"].every((name) => info[name] === last[name]));
  return [...spectra.slice(from), ...spectra.slice(0, from)].find(isNext) ?? null;
}

/**
 * Topics to show: those that the view names and that there are; else the first source's first channels, those of a source
 * that was only recorded where there is no other.
 */
export function chosenTopics(names, topics) {
  const spectra = spectraOf(topics);
  if (names.length > 0) {
    return [...new Set(names.map((name) => findTopic(name, spectra)).filter(Boolean))];
  }
  const live = spectra.filter(({ is_silent }) => !is_silent);
  const some = live.length > 0 ? live : spectra;
  const first = some.find(({ kind }) => kind === "spec") ?? some[0];
  const isLike = (info) => ["endpoint", "source", "product", "kind"].every((name) => info[name] === first[name]);
  return spectra.filter(isLike).slice(0, FIRST_SHOWN);
}
