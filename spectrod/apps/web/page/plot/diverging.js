/** Colours of differences: blue below 0, red above, the plot's own colour at 0. */

const SHADES = 256;
const LOW = [33, 102, 172];
const HIGH = [178, 24, 43];
const DARK_LOW = [107, 174, 240];
const DARK_HIGH = [255, 133, 120];
const MIDDLES = Object.freeze({ light: [247, 247, 247], dark: [24, 27, 31] });

/** Return the 256 colours of a theme [red, green, blue], the lowest difference first; 127 and 128 are about 0. */
export function divergingColours(theme) {
  const isDark = theme === "dark";
  const [low, high] = isDark ? [DARK_LOW, DARK_HIGH] : [LOW, HIGH];
  const middle = isDark ? MIDDLES.dark : MIDDLES.light;
  return Array.from({ length: SHADES }, (_, k) => {
    const place = (2 * k) / (SHADES - 1) - 1;
    const end = place < 0 ? low : high;
    return middle.map((value, c) => Math.round(value + Math.abs(place) * (end[c] - value)));
  });
}
