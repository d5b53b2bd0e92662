/**
 * Pens that draw a figure: one writes SVG, one paints a canvas. Both have the same methods, in CSS px (1/96 inch), so
 * that a picture and its drawing cannot differ.
 *
 * `rect(x, y, w, h, look)`, `lines(polylines, look)`, `text(x, y, text, look)`, `image(x, y, w, h, canvas)`,
 * `clip(x, y, w, h, draw)` and `measure(text, size)`. A look has `fill`, `stroke`, `width`, `dash`, `opacity`; of a text
 * `fill`, `size`, `anchor` (`start`, `middle`, `end`), `isBold`, `isUpright` (turned by 90 degrees, read from below).
 */

const FONT = "'DejaVu Sans', 'Helvetica Neue', Arial, sans-serif";
/** What XML 1.0 has no sign for, not even escaped; with half a surrogate pair. */
const NO_XML = /[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu;
const ESCAPES = Object.freeze({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;" });

/** A text as XML has it in elements and attributes; what no XML can have is a replacement character. */
export function xmlText(text) {
  return String(text).replace(NO_XML, "\uFFFD").replace(/[&<>"'\t\n\r]/g, (sign) => ESCAPES[sign]);
}

/** A number of SVG: three decimals of a CSS px are 0.3 µm. */
const short = (value) => String(Number(value.toFixed(3)));

const fontOf = ({ size, isBold }) => `${isBold ? "bold " : ""}${size}px ${FONT}`;

/** Writes SVG 1.1 that needs nothing else: no script, no style sheet, no address. */
export class SvgPen {
  #parts = [];
  #clips = 0;

  /** @param {(text: string, look: {size: number, isBold?: boolean}) => number} measure width of a text [CSS px] */
  constructor(measure) {
    this.measure = measure;
  }

  #add(name, attributes, content = null) {
    const written = Object.entries(attributes)
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([key, value]) => ` ${key}="${typeof value === "number" ? short(value) : xmlText(value)}"`)
      .join("");
    this.#parts.push(content === null ? `<${name}${written}/>` : `<${name}${written}>${xmlText(content)}</${name}>`);
  }

  rect(x, y, width, height, look) {
    this.#add("rect", { x, y, width, height, ...shapeOf(look) });
  }

  lines(polylines, look) {
    const d = polylines.map((points) => `M${points.map(([x, y]) => `${short(x)} ${short(y)}`).join("L")}`).join("");
    if (d !== "") this.#add("path", { class: look.name, d, ...shapeOf({ fill: "none", ...look }), "stroke-linejoin": "round" });
  }

  text(x, y, text, { fill, size, anchor = "start", isBold = false, isUpright = false }) {
    const turned = isUpright ? `rotate(-90 ${short(x)} ${short(y)})` : null;
    this.#add("text", { x, y, fill, "font-family": FONT, "font-size": size, "font-weight": isBold ? "bold" : null, "text-anchor": anchor === "start" ? null : anchor, transform: turned }, text);
  }

  image(x, y, width, height, canvas) {
    const address = canvas.toDataURL("image/png");
    // A canvas that is too large for a browser has an empty address.
    if (!address.startsWith("data:image/png")) throw new Error(`figure: this browser makes no picture of ${canvas.width} x ${canvas.height} pixels`);
    this.#add("image", { x, y, width, height, preserveAspectRatio: "none", "xlink:href": address });
  }

  clip(x, y, width, height, draw) {
    this.#clips += 1;
    const id = `clip${this.#clips}`;
    this.#parts.push(`<clipPath id="${id}">`);
    this.rect(x, y, width, height, {});
    this.#parts.push(`</clipPath><g clip-path="url(#${id})">`);
    draw();
    this.#parts.push("</g>");
  }

  /** The drawing, `width` by `height` [CSS px]; `title` is its name for a screen reader. */
  document({ width, height, title }) {
    const mm = (px) => `${short((px * 25.4) / 96)}mm`;
    const head = `<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" version="1.1" width="${mm(width)}" height="${mm(height)}" viewBox="0 0 ${short(width)} ${short(height)}">`;
    return `${head}\n<title>${xmlText(title)}</title>\n${this.#parts.join("\n")}\n</svg>\n`;
  }
}

function shapeOf({ fill, stroke, width, dash, opacity }) {
  return { fill, stroke, "stroke-width": width, "stroke-dasharray": dash ? dash.map(short).join(" ") : null, "fill-opacity": opacity };
}

/** Paints a canvas whose context is scaled to CSS px already. */
export class CanvasPen {
  #context;

  /** @param {CanvasRenderingContext2D} context */
  constructor(context) {
    this.#context = context;
  }

  #paint({ fill = "black", stroke, width = 1, dash, opacity = 1 }, path, isClosed) {
    const context = this.#context;
    if (isClosed && fill !== "none") {
      context.globalAlpha = opacity;
      context.fillStyle = fill;
      context.fill(path);
      context.globalAlpha = 1;
    }
    if (stroke === undefined) return;
    context.strokeStyle = stroke;
    context.lineWidth = width;
    context.lineJoin = "round";
    context.setLineDash(dash ?? []);
    context.stroke(path);
  }

  rect(x, y, width, height, look) {
    const path = new Path2D();
    path.rect(x, y, width, height);
    this.#paint(look, path, true);
  }

  lines(polylines, look) {
    const path = new Path2D();
    for (const points of polylines) points.forEach(([x, y], k) => (k === 0 ? path.moveTo(x, y) : path.lineTo(x, y)));
    this.#paint({ fill: "none", ...look }, path, look.fill !== undefined);
  }

  text(x, y, text, { fill, size, anchor = "start", isBold = false, isUpright = false }) {
    const context = this.#context;
    context.save();
    context.font = fontOf({ size, isBold });
    context.fillStyle = fill;
    context.textAlign = { start: "left", middle: "center", end: "right" }[anchor];
    context.textBaseline = "alphabetic";
    context.translate(x, y);
    if (isUpright) context.rotate(-Math.PI / 2);
    context.fillText(text, 0, 0);
    context.restore();
  }

  image(x, y, width, height, canvas) {
    this.#context.imageSmoothingEnabled = false;
    this.#context.drawImage(canvas, x, y, width, height);
  }

  clip(x, y, width, height, draw) {
    const context = this.#context;
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    draw();
    context.restore();
  }

  measure(text, look) {
    this.#context.font = fontOf(look);
    return this.#context.measureText(text).width;
  }
}
