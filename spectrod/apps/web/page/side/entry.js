/** Coming in: the token of a link, or one that is typed. */

import { setText } from "./dom.js";
import { postToken, splitToken } from "../link/token.js";

/**
 * Post the token of the page's link and take it out of the address first, so that it stands nowhere.
 *
 * @returns {Promise<string>} empty, or why it was not accepted
 */
export async function useLinkToken(base) {
  const { token, rest } = splitToken(location.hash);
  if (token === null) return "";
  history.replaceState(null, "", `#${rest}`);
  return postToken(token, base);
}

/** Show or hide the form for a token; after a good one the page is loaded again with its cookie. */
export function askForToken(isNeeded) {
  const form = document.getElementById("token");
  form.hidden = !isNeeded;
  form.onsubmit = (event) => {
    event.preventDefault();
    submit(form);
  };
}

async function submit(form) {
  const failed = await postToken(form.elements.token.value.trim(), document.baseURI);
  setText(document.getElementById("token-error"), failed);
  if (failed === "") location.reload();
}
