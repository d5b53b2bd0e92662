/**
 * The token of a link: `#k=TOKEN` is posted once for a cookie and taken out of the address, so that
 * neither a bookmark nor a screenshot of the page carries it.
 */

const LENGTH_MAX = 256;

/**
 * Take the token out of a fragment.
 *
 * @returns {{token: string | null, rest: string}} `rest`: the fragment without it, without `#`
 */
export function splitToken(fragment) {
  const parts = fragment.replace(/^#/, "").split("&");
  const isToken = (part) => part.startsWith("k=");
  const found = parts.find(isToken);
  const token = found?.slice(2) ?? "";
  const rest = parts.filter((part) => !isToken(part)).join("&");
  return { token: token !== "" && token.length <= LENGTH_MAX ? token : null, rest };
}

/**
 * Post a token; the answer sets the cookie.
 *
 * @returns {Promise<string>} empty, or why not, for a person
 */
export async function postToken(token, base, fetch = globalThis.fetch) {
  let answer;
  try {
    answer = await fetch(new URL("api/token", base).href, {
      method: "POST",
      body: token,
      headers: { "Content-Type": "text/plain" },
    });
  } catch {
    return "the server does not answer";
  }
  if (answer.ok) return "";
  return answer.status === 403 ? "this token is not valid" : `HTTP status ${answer.status}`;
}
