/** Light, dark, or as the system says. */

const DARK = "(prefers-color-scheme: dark)";

let chosen = "auto";

/** Use a theme of `prefs.js`. */
export function applyTheme(theme) {
  chosen = theme;
  const isDark = theme === "dark" || (theme === "auto" && matchMedia(DARK).matches);
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
}

/** Follow the system, and say when colours have changed: canvases do not change by themselves. */
export function watchTheme(changed) {
  for (const query of [DARK, "(prefers-contrast: more)", "(forced-colors: active)"]) {
    matchMedia(query).addEventListener("change", () => {
      applyTheme(chosen);
      changed();
    });
  }
}
