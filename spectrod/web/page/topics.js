/** Names of topics in a view, and which are shown when it names none. */

const SPECTRA = Object.freeze(["spec", "bands"]);
const FIRST_SHOWN = 2;

/** Topics that have a spectrum, which a panel can draw. */
export const spectraOf = (topics) => topics.filter(({ kind }) => SPECTRA.includes(kind));

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

/** Title of a topic for a person. */
export function topicTitle({ source, channel, product }) {
  return `${source} · ${channel} · ${product}`;
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
