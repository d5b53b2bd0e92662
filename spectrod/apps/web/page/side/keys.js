/** The keys of the page: one table for what they do and for the list that `?` shows. */

/** `keys`: as `KeyboardEvent.key`, with `Shift+` and `Alt+` before; `action`: a name that main.js knows. */
export const KEYS = Object.freeze(
  [
    { keys: ["ArrowLeft"], action: "panLower", text: "pan to lower frequencies; a cursor with a time: one bin or row to the left" },
    { keys: ["ArrowRight"], action: "panHigher", text: "pan to higher frequencies; cursor: to the right" },
    { keys: ["ArrowUp"], action: "levelsUp", text: "level range up 5 dB; cursor: up" },
    { keys: ["ArrowDown"], action: "levelsDown", text: "level range down 5 dB; cursor: down" },
    { keys: ["+", "="], action: "zoomIn", text: "zoom in (frequency)" },
    { keys: ["-"], action: "zoomOut", text: "zoom out (frequency)" },
    { keys: ["Home"], action: "showAll", text: "full frequency span" },
    { keys: ["Shift+ArrowUp"], action: "later", text: "scroll up: to later rows, or earlier ones where rows move up" },
    { keys: ["Shift+ArrowDown"], action: "earlier", text: "scroll down" },
    { keys: ["Shift+ArrowRight"], action: "spanLonger", text: "longer time span" },
    { keys: ["Shift+ArrowLeft"], action: "spanShorter", text: "shorter time span" },
    { keys: ["End"], action: "live", text: "back to live" },
    { keys: ["Escape"], action: "escape", text: "clear the selection, then the cursors' times, then back to live" },
    { keys: [" "], action: "pause", text: "pause or resume" },
    { keys: ["a", "A"], action: "autoLevels", text: "automatic level range" },
    { keys: ["["], action: "floorDown", text: "min level down 5 dB" },
    { keys: ["]"], action: "floorUp", text: "min level up 5 dB" },
    { keys: ["{"], action: "topDown", text: "max level down 5 dB" },
    { keys: ["}"], action: "topUp", text: "max level up 5 dB" },
    { keys: ["c", "C"], action: "cursor", text: "set cursor A, then B, then clear both" },
    { keys: [","], action: "cursorLower", text: "last cursor one bin down" },
    { keys: ["."], action: "cursorHigher", text: "last cursor one bin up" },
    { keys: ["p", "P"], action: "cursorToPeak", text: "last cursor to the strongest peak" },
    { keys: ["t", "T"], action: "loudest", text: "cursor A to the loudest moment of the selection, or of what is shown" },
    { keys: ["d", "D"], action: "dayEarlier", text: "cursor B 24 hours before cursor A" },
    { keys: ["h", "H"], action: "harmonics", text: "harmonics of cursor A, on or off" },
    { keys: ["b", "B"], action: "band", text: "band power between the cursors, on or off" },
    { keys: ["s", "S"], action: "select", text: "select the box between the cursors' places, or clear it" },
    { keys: ["m", "M"], action: "holdMax", text: "max hold on or off" },
    { keys: ["n", "N"], action: "holdMin", text: "min hold on or off" },
    { keys: ["v", "V"], action: "holdMean", text: "average on or off" },
    { keys: ["r", "R"], action: "resetHolds", text: "reset holds and average" },
    { keys: ["f", "F"], action: "reference", text: "store the spectrum as reference, or clear it" },
    { keys: ["l", "L"], action: "legend", text: "legend: lines, hatching, marks" },
    { keys: ["o", "O"], action: "overlay", text: "one channel more, all overlaid" },
    { keys: ["g", "G"], action: "saveFigure", text: "save a figure (PNG)" },
    { keys: ["x", "X"], action: "saveLevels", text: "save the levels that the waterfalls show (CSV)" },
    { keys: ["w", "W"], action: "wall", text: "the plots alone on the whole screen, on or off" },
    { keys: ["?"], action: "help", text: "keys and gestures" },
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
