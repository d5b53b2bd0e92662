/** What makes figures, as files and on paper. It is loaded after the page, with all that it alone needs. */

import { figureOf } from "../panel/figureof.js";
import { figureCanvas, figurePng, figureSvg } from "../plot/figurefiles.js";

const KINDS = Object.freeze({ png: figurePng, svg: figureSvg });

/** What fits on a page of A4 and of US Letter: one figure, or two of several. */
const printedSize = (count) => ({ widthMm: 180, plotsMm: count > 1 ? 80 : 150, dpi: 300 });

/**
 * Figures below each other as files, all of one moment.
 *
 * @param {object[]} shown what `figureOf` takes
 * @param {{widthMm: number, plotsMm: number, dpi: number}} size
 * @returns {(kind: "png" | "svg") => Promise<Blob> | Blob}
 */
export function figureFiles(shown, size) {
  const figures = shown.map(figureOf);
  return (kind) => KINDS[kind](figures, size);
}

/** Figures for paper, a canvas each. */
export function printedFigures(shown) {
  return shown.map((one) => {
    const figure = figureOf(one);
    const canvas = figureCanvas([figure], printedSize(shown.length));
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${figure.title}, ${figure.time}`);
    return canvas;
  });
}
