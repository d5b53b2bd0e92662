/**
 * How a waterfall lies on the screen: what knows the directions in which time goes on.
 *
 * A place of a waterfall is an age, counted from its newest row, and a tone, counted from its lowest frequency; on the
 * screen it is counted from the left and the top. All are in the same pixels, CSS or device ones.
 */

/** Tone and age of a step to the right, then of one down; each table is its own inverse. */
const STEPS = Object.freeze({
  down: [1, 0, 0, 1],
  up: [1, 0, 0, -1],
  right: [0, -1, -1, 0],
});

/** Names of directions: where rows move as time goes on, or `right`: the newest at the right, frequency upwards. */
export const DIRECTIONS = Object.freeze(Object.keys(STEPS));

/** Tone and age of a way on the screen. */
export function wayIn(direction, { x, y }) {
  const [toneX, ageX, toneY, ageY] = STEPS[direction];
  return { tone: toneX * x + toneY * y, age: ageX * x + ageY * y };
}

/** A box in which time has a direction; it never changes. */
export class Orientation {
  /**
   * @param {"down" | "up" | "right"} direction
   * @param {{width: number, height: number}} size of the box [px]
   */
  constructor(direction, { width, height }) {
    this.direction = direction;
    this.width = width;
    this.height = height;
    /** Whether frequencies are above each other, and times beside each other. */
    this.isUpright = STEPS[direction][0] === 0;
    /** Lengths of the frequency axis and of the time axis. */
    [this.breadth, this.length] = this.isUpright ? [height, width] : [width, height];
    Object.freeze(this);
  }

  /** As a canvas takes it: the transformation that draws what is made of tones to the right and ages down. */
  get matrix() {
    const [a, b, c, d] = STEPS[this.direction];
    return [a, b, c, d, a + c < 0 ? this.width : 0, b + d < 0 ? this.height : 0];
  }

  /** Place on the screen, from the left and the top of the box. */
  toScreen({ tone, age }) {
    const [a, b, c, d, left, top] = this.matrix;
    return { x: a * tone + c * age + left, y: b * tone + d * age + top };
  }

  /** The inverse of `toScreen`. */
  fromScreen({ x, y }) {
    const [, , , , left, top] = this.matrix;
    return wayIn(this.direction, { x: x - left, y: y - top });
  }

  /** Numbers of the column of frequencies and of the line in which a pixel is. */
  pixelAt({ x, y }) {
    const { tone, age } = this.fromScreen({ x: Math.floor(x) + 0.5, y: Math.floor(y) + 0.5 });
    return { tone: Math.floor(tone), age: Math.floor(age) };
  }

  /** Place of an age on the time axis, from its left or upper end. */
  along(age) {
    const { x, y } = this.toScreen({ tone: 0, age });
    return this.isUpright ? x : y;
  }

  /** Box between two tones and two ages, in any order. */
  boxOf(tones, ages) {
    const [one, other] = [0, 1].map((k) => this.toScreen({ tone: tones[k], age: ages[k] }));
    const [width, height] = [Math.abs(one.x - other.x), Math.abs(one.y - other.y)];
    return { left: Math.min(one.x, other.x), top: Math.min(one.y, other.y), width, height };
  }

  /** Line of all frequencies at an age, as a box. */
  moment(age) {
    return this.boxOf([0, this.breadth], [age, age]);
  }

  /** Line of all times at a tone, as a box. */
  tone(tone) {
    return this.boxOf([tone, tone], [0, this.length]);
  }
}
