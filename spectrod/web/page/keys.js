/** The keys of the page: one table for what they do and for the list that `?` shows. */

/** `keys`: as `KeyboardEvent.key`, with `Shift+` and `Alt+` before; `action`: a name that main.js knows. */
export const KEYS = Object.freeze(
  [
    { keys: ["ArrowLeft"], action: "panLower", text: "show lower frequencies" },
    { keys: ["ArrowRight"], action: "panHigher", text: "show higher frequencies" },
    { keys: ["ArrowUp"], action: "levelsUp", text: "show higher levels" },
    { keys: ["ArrowDown"], action: "levelsDown", text: "show lower levels" },
    { keys: ["+", "="], action: "zoomIn", text: "zoom in" },
    { keys: ["-"], action: "zoomOut", text: "zoom out" },
    { keys: ["Home"], action: "showAll", text: "show all frequencies" },
    { keys: ["Shift+ArrowUp"], action: "later", text: "later" },
    { keys: ["Shift+ArrowDown"], action: "earlier", text: "earlier" },
    { keys: ["Shift+ArrowRight"], action: "spanLonger", text: "a longer time" },
    { keys: ["Shift+ArrowLeft"], action: "spanShorter", text: "a shorter time" },
    { keys: ["End"], action: "live", text: "back to live" },
    { keys: [" "], action: "pause", text: "pause or go on" },
    { keys: ["a", "A"], action: "autoLevels", text: "levels by themselves" },
    { keys: ["["], action: "floorDown", text: "lower floor" },
    { keys: ["]"], action: "floorUp", text: "higher floor" },
    { keys: ["{"], action: "topDown", text: "lower top" },
    { keys: ["}"], action: "topUp", text: "higher top" },
    { keys: ["c", "C"], action: "cursor", text: "set a cursor, then a second one, then none" },
    { keys: [","], action: "cursorLower", text: "move the last cursor a bin lower" },
    { keys: ["."], action: "cursorHigher", text: "move the last cursor a bin higher" },
    { keys: ["p", "P"], action: "cursorToPeak", text: "move the last cursor to the strongest peak" },
    { keys: ["b", "B"], action: "band", text: "measure the band between the cursors, or none" },
    { keys: ["m", "M"], action: "holdMax", text: "hold the maxima" },
    { keys: ["n", "N"], action: "holdMin", text: "hold the minima" },
    { keys: ["r", "R"], action: "resetHolds", text: "start the holds again" },
    { keys: ["f", "F"], action: "reference", text: "keep this spectrum as a reference, or none" },
    { keys: ["?"], action: "help", text: "this list" },
  ].map(Object.freeze),
);

/** Signs for keys whose names people do not read. */
const SIGNS = new Map([
  [" ", "Space"],
  ["ArrowLeft", "←"],
  ["ArrowRight", "→"],
  ["ArrowUp", "↑"],
  ["ArrowDown", "↓"],
]);

/** Text of a key for the list. */
export function keyText(key) {
  const parts = key.length > 1 ? key.split("+") : [key];
  const sign = (part) => SIGNS.get(part) ?? (part.length === 1 ? part.toUpperCase() : part);
  return parts.map(sign).join(" ");
}

const ACTIONS = new Map(KEYS.flatMap(({ keys, action }) => keys.map((key) => [key, action])));

/**
 * Action of a key press, or null.
 *
 * Shift counts for arrows alone: elsewhere it is already in the sign. Control, Alt and Meta belong to
 * the browser.
 */
export function actionOf({ key, shiftKey, ctrlKey, altKey, metaKey }) {
  if (ctrlKey || altKey || metaKey) return null;
  const name = shiftKey && key.startsWith("Arrow") ? `Shift+${key}` : key;
  return ACTIONS.get(name) ?? null;
}
