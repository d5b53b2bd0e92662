/** Figures as files: PNG of a size and a resolution, SVG, and canvases for a printer. */

import { drawFigure, figureHeight } from "./figure.js";
import { CanvasPen, SvgPen } from "./figurepens.js";

const CSS_DPI = 96;
const MM_PER_INCH = 25.4;
/** Bounds of a picture: what browsers draw at most. */
const SIDE_PX_MAX = 16384;
const PIXELS_MAX = 64e6;

const cssPx = (mm) => (mm * CSS_DPI) / MM_PER_INCH;

/** Sizes as figure.js takes them. */
const sizeOf = ({ widthMm, plotsMm, dpi }) => ({ width: Math.round(cssPx(widthMm)), plotsHeight: Math.round(cssPx(plotsMm)), scale: dpi / CSS_DPI });

/**
 * Pixels of a picture of some figures below each other.
 *
 * @throws {Error} if a browser does not draw so many
 */
export function pictureSize(heights, { width, scale }) {
  const [widthPx, heightPx] = [width, heights.reduce((sum, one) => sum + one, 0)].map((side) => Math.round(side * scale));
  if (Math.max(widthPx, heightPx) > SIDE_PX_MAX || widthPx * heightPx > PIXELS_MAX) {
    throw new Error(`figure of ${widthPx} x ${heightPx} pixels: must have ${SIDE_PX_MAX} a side and ${PIXELS_MAX / 1e6} million at most; choose a smaller size, fewer dpi, or one panel`);
  }
  return { widthPx, heightPx };
}

/**
 * Draw figures below each other into a canvas.
 *
 * @param {import("./figure.js").Figure[]} figures
 * @param {{widthMm: number, plotsMm: number, dpi: number}} given width, height of the plots of each [mm]
 * @returns {HTMLCanvasElement}
 */
export function figureCanvas(figures, given) {
  const size = sizeOf(given);
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d");
  const pen = new CanvasPen(context);
  const heights = figures.map((figure) => figureHeight(figure, size, pen));
  const { widthPx, heightPx } = pictureSize(heights, size);
  Object.assign(canvas, { width: widthPx, height: heightPx });
  context.scale(size.scale, size.scale);
  pen.rect(0, 0, size.width, heightPx / size.scale, { fill: "#ffffff" });
  figures.reduce((y, figure) => drawFigure(pen, figure, size, y), 0);
  return canvas;
}

/** Figures below each other as PNG, which says how large it is to be printed. */
export async function figurePng(figures, given) {
  const canvas = figureCanvas(figures, given);
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  if (blob === null) throw new Error(`figure of ${canvas.width} x ${canvas.height} pixels: this browser does not draw it`);
  return new Blob([withResolution(new Uint8Array(await blob.arrayBuffer()), given.dpi)], { type: "image/png" });
}

/** Figures below each other as SVG: scales, lines and words as vectors, waterfalls as pictures. */
export function figureSvg(figures, given) {
  const size = sizeOf(given);
  const measuring = new CanvasPen(document.createElement("canvas").getContext("2d"));
  const pen = new SvgPen((text, look) => measuring.measure(text, look));
  const heights = figures.map((figure) => figureHeight(figure, size, pen));
  const height = heights.reduce((sum, one) => sum + one, 0);
  pictureSize(heights, size);
  pen.rect(0, 0, size.width, height, { fill: "#ffffff" });
  figures.reduce((y, figure) => drawFigure(pen, figure, size, y), 0);
  const text = pen.document({ width: size.width, height, title: figures.map(({ title, time }) => `${title}, ${time}`).join("; ") });
  return new Blob([text], { type: "image/svg+xml" });
}

const PNG_HEAD_BYTES = 33; // signature and IHDR, which is the first chunk

/** A PNG with its resolution (PNG 1.2, chunk pHYs): without it a word processor shows it in another size. */
export function withResolution(png, dpi) {
  const perMetre = Math.round((dpi * 1000) / MM_PER_INCH);
  const chunk = new Uint8Array(21);
  const view = new DataView(chunk.buffer);
  view.setUint32(0, 9);
  chunk.set([0x70, 0x48, 0x59, 0x73], 4);
  view.setUint32(8, perMetre);
  view.setUint32(12, perMetre);
  chunk[16] = 1; // of a metre
  view.setUint32(17, crc32(chunk.subarray(4, 17)));
  const found = new Uint8Array(png.length + chunk.length);
  found.set(png.subarray(0, PNG_HEAD_BYTES));
  found.set(chunk, PNG_HEAD_BYTES);
  found.set(png.subarray(PNG_HEAD_BYTES), PNG_HEAD_BYTES + chunk.length);
  return found;
}

/** The check sum of PNG's chunks (ISO 3309, polynomial 0xEDB88320 with the lowest bit first). */
function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let k = 0; k < 8; k += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}
