/**
 * The waterfall on a GPU: lines of codes in a texture, which a shader puts in place and colours.
 *
 * Codes and colours are fetched as integers, so a pixel is exactly that of waterfall2d.js.
 */

import { Waterfall } from "./waterfall.js";

/** After the context was lost this often, 2D draws. */
const LOSSES_MAX = 3;

const COLORS_SIDE = 256; // 65536 colours as a square: the least texture of WebGL2 is 2048 wide

const VERTEX = `#version 300 es
void main() {
  // One triangle that covers the canvas.
  vec2 corner = vec2(float((gl_VertexID << 1) & 2), float(gl_VertexID & 2));
  gl_Position = vec4(2.0 * corner - 1.0, 0.0, 1.0);
}`;

const FRAGMENT = `#version 300 es
precision highp float;
precision highp int;
precision highp usampler2D;
uniform usampler2D lines;
uniform sampler2D colors;
uniform int top;
uniform int slots;
uniform int height;
uniform ivec4 steps;
uniform ivec2 first;
out vec4 color;
void main() {
  // From the upper left corner, then as tone and age: see orientation.js.
  ivec2 at = ivec2(int(gl_FragCoord.x), height - 1 - int(gl_FragCoord.y));
  ivec2 place = first + steps.xy * at.x + steps.zw * at.y;
  int code = int(texelFetch(lines, ivec2(place.x, (top + place.y) % slots), 0).r);
  color = texelFetch(colors, ivec2(code & 255, code >> 8), 0);
}`;

/** A waterfall that WebGL2 draws. */
export class WaterfallGL extends Waterfall {
  #gl;
  #program = null;
  #places = null;
  #lines = null;
  #colors = null;
  #colorTable = null;
  #losses = 0;
  #onLost = (event) => this.#lose(event);
  #onRestored = () => this.#restore();

  constructor(canvas, previous = null) {
    super(canvas, previous);
    const options = { alpha: false, antialias: false, depth: false, preserveDrawingBuffer: true };
    this.#gl = canvas.getContext("webgl2", options);
    if (this.#gl === null) throw new Error("no WebGL2: the browser refuses it");
    canvas.addEventListener("webglcontextlost", this.#onLost);
    canvas.addEventListener("webglcontextrestored", this.#onRestored);
    this.#build();
    if (previous !== null && this.lines.height > 0) this.refit();
  }

  /** Whether 2D should go on: the context was lost too often. */
  get hasFailed() {
    return this.#losses >= LOSSES_MAX;
  }

  get needsRecoloring() {
    return false;
  }

  #lose(event) {
    event.preventDefault(); // else it is not restored
    this.#losses += 1;
    this.#program = null;
  }

  #restore() {
    if (this.hasFailed || this.#gl.isContextLost()) return;
    this.#build();
    if (this.lines.height > 0) this.paintSize();
    if (this.#colorTable !== null) this.paintColors(this.#colorTable);
    this.repaint();
  }

  #build() {
    const gl = this.#gl;
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
      gl.deleteShader(shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) {
      throw new Error(`the waterfall's shader: ${gl.getProgramInfoLog(program)}`);
    }
    gl.useProgram(program);
    const names = ["lines", "colors", "top", "slots", "height", "steps", "first"];
    this.#places = Object.fromEntries(names.map((name) => [name, gl.getUniformLocation(program, name)]));
    gl.uniform1i(this.#places.lines, 0);
    gl.uniform1i(this.#places.colors, 1);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    this.#colors = this.#makeTexture(1, gl.RGBA8, COLORS_SIDE, COLORS_SIDE);
    this.#lines = null;
    this.#program = program;
  }

  #makeTexture(unit, format, width, height) {
    const gl = this.#gl;
    const texture = gl.createTexture();
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texStorage2D(gl.TEXTURE_2D, 1, format, width, height);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    return texture;
  }

  /** @throws {Error} if the GPU has no texture of this size */
  paintSize() {
    if (this.#program === null) return;
    const gl = this.#gl;
    const { width, slots } = this.lines;
    const largest = gl.getParameter(gl.MAX_TEXTURE_SIZE);
    if (width > largest || slots > largest) {
      throw new Error(`waterfall of ${width} x ${slots}: the GPU has at most ${largest}`);
    }
    gl.deleteTexture(this.#lines);
    this.#lines = this.#makeTexture(0, gl.R16UI, Math.max(width, 1), slots);
    const { tone, age } = this.places.pixelAt({ x: 0, y: 0 });
    gl.viewport(0, 0, this.places.width, this.places.height);
    gl.uniform1i(this.#places.slots, slots);
    gl.uniform1i(this.#places.height, this.places.height);
    gl.uniform4i(this.#places.steps, ...this.places.matrix.slice(0, 4));
    gl.uniform2i(this.#places.first, tone, age);
  }

  paintColors(colors) {
    this.#colorTable = colors;
    if (this.#program === null) return;
    const gl = this.#gl;
    const bytes = new Uint8Array(colors.buffer);
    gl.activeTexture(gl.TEXTURE1);
    gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, COLORS_SIDE, COLORS_SIDE, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
  }

  paintSlot(slot) {
    if (this.#program === null) return;
    const gl = this.#gl;
    const { codes, width } = this.lines;
    gl.activeTexture(gl.TEXTURE0);
    const format = gl.RED_INTEGER;
    const type = gl.UNSIGNED_SHORT;
    gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, slot, width, 1, format, type, codes, slot * width);
  }

  compose(top) {
    if (this.#program === null) return;
    const gl = this.#gl;
    gl.uniform1i(this.#places.top, top);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
  }

  destroy() {
    this.canvas.removeEventListener("webglcontextlost", this.#onLost);
    this.canvas.removeEventListener("webglcontextrestored", this.#onRestored);
    this.#gl.getExtension("WEBGL_lose_context")?.loseContext();
    super.destroy();
  }
}
