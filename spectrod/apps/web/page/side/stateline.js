/** The one line of state: what the page shows, what is dead or lost with what to do, or that nothing is. */

const LOSING_MS = 60_000;

/** What to do, by the names of facts; facts without one say it themselves. */
const ADVICE = new Map([
  ["state", "see its log"],
  ["rows", "see the daemon's log"],
  ["overflows", "its machine is too busy, or the device stutters"],
  ["suspected losses", "its machine is too busy, or the device stutters"],
  ["dropped by the daemon", "its machine is too busy: analyse less"],
  ["missed", "the line from the daemon is too slow"],
  ["gaps", "see the daemon's log"],
  ["dropped for this page", "this line or browser is too slow: show fewer channels"],
]);

/** Since when losses grow: a count that stood there when the page came is one of before. */
export class LossWatch {
  #counts = new Map();
  #grownAt = new Map();

  /**
   * Those of some facts whose losses have grown in the last minute.
   *
   * @param {Array<{title: string, name: string, lost?: number}>} facts
   * @param {number} now [ms]
   */
  growing(facts, now) {
    const losses = facts.filter(({ lost }) => lost > 0);
    const keys = new Set(facts.map(keyOf));
    for (const key of this.#counts.keys()) if (!keys.has(key)) this.#forget(key);
    for (const fact of facts) this.#note(keyOf(fact), fact.lost ?? 0, now);
    return losses.filter((fact) => now - (this.#grownAt.get(keyOf(fact)) ?? -Infinity) < LOSING_MS);
  }

  #note(key, lost, now) {
    if (lost > (this.#counts.get(key) ?? lost)) this.#grownAt.set(key, now);
    this.#counts.set(key, lost);
  }

  #forget(key) {
    this.#counts.delete(key);
    this.#grownAt.delete(key);
  }
}

const keyOf = ({ title, name }) => JSON.stringify([title, name]);

/**
 * The line.
 *
 * @param {Array<{title: string, endpoint?: string, facts: object[]}>} groups see `healthGroups`
 * @param {string} shown what the page shows: `live`, `paused, 12:00:00`
 * @param {LossWatch} watch
 * @param {number} now [ms]
 * @returns {{text: string, grade: "good" | "notice" | "bad", about: string}} `about`: another one is another state,
 *   while durations and counts in the text go on
 */
export function stateLine(groups, shown, watch, now) {
  const facts = causes(groups).flatMap(({ title, facts: own }) => own.map((one) => ({ title, ...one })));
  const dead = facts.filter(({ grade }) => grade === "bad");
  const losing = watch.growing(facts, now).filter(({ grade }) => grade !== "bad");
  const worst = [...dead, ...losing];
  const noted = facts.filter((one) => one.grade === "notice" && !losing.includes(one));
  const isLost = facts.some(({ lost }) => lost > 0);
  if (worst.length > 0) return line([worst, noted].flat(), "bad", badText(worst));
  if (noted.length > 0) return line(noted, "notice", `${shown}; ${counted(noted, phrase)}`);
  return { text: shown === "live" && !isLost ? "live, nothing lost" : shown, grade: "good", about: shown };
}

const line = (facts, grade, text) => ({ text, grade, about: [grade, ...facts.map(keyOf)].join() });

/** Groups without those whose daemon, or server, is away: that is why they have nothing. */
function causes(groups) {
  const [connections, ...others] = groups;
  const bad = connections.facts.filter(({ grade }) => grade === "bad");
  if (bad.some(({ name }) => name === "page")) return [{ title: "", facts: bad.filter(({ name }) => name === "page") }];
  const away = new Set(bad.map(({ name }) => name));
  return [connections, ...others.filter(({ endpoint }) => !away.has(endpoint))];
}

function badText(facts) {
  return counted(facts, (one) => {
    const advice = one.advice ?? ADVICE.get(one.name);
    return advice === undefined ? phrase(one) : `${phrase(one)}: ${advice}`;
  });
}

/** The first of some facts, and how many more there are. */
function counted(facts, textOf) {
  return facts.length > 1 ? `${textOf(facts[0])}; and ${facts.length - 1} more` : textOf(facts[0]);
}

/** A fact as a phrase: connections have no title, and some names would say nothing new. */
function phrase({ title, name, text, phrase: own = null }) {
  const said = own ?? (["state", "signal"].includes(name) ? text : `${name} ${text}`);
  if (title === "") return name === "page" ? text : `${name}: ${own ?? text}`;
  return `${title}: ${said}`;
}
