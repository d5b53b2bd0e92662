/** The page on a wall: the plots on the whole screen without controls, which stays lit where the browser can. */

/** Full screen of a page. */
export class Wall {
  #document;
  #navigator;
  #lock = null;
  #isOn = false;

  /**
   * @param {Document} document
   * @param {Navigator} navigator
   */
  constructor(document, navigator) {
    this.#document = document;
    this.#navigator = navigator;
    document.addEventListener("fullscreenchange", () => this.#show(document.fullscreenElement !== null));
    // A browser gives the lock back while the page is hidden.
    document.addEventListener("visibilitychange", () => this.#keepLit());
  }

  /** Show the plots alone, or all again; without full screens, as on some phones, within the window. */
  async toggle() {
    const { documentElement, fullscreenElement } = this.#document;
    if (fullscreenElement) await this.#document.exitFullscreen();
    else if (!this.#isOn && documentElement.requestFullscreen) await documentElement.requestFullscreen();
    else this.#show(!this.#isOn);
  }

  /** Leave it where no full screen does so by itself; return whether it was left. */
  leave() {
    if (!this.#isOn || this.#document.fullscreenElement) return false;
    this.#show(false);
    return true;
  }

  #show(isOn) {
    this.#isOn = isOn;
    if (isOn) this.#document.body.dataset.wall = "";
    else delete this.#document.body.dataset.wall;
    this.#keepLit();
  }

  async #keepLit() {
    const isWanted = this.#isOn && this.#document.visibilityState === "visible";
    if (!isWanted) {
      const lock = this.#lock;
      this.#lock = null;
      await lock?.release();
    } else if (this.#navigator.wakeLock !== undefined) {
      // Refused with a low battery, or by policy: the plots are shown all the same.
      const lock = await this.#navigator.wakeLock.request("screen").catch(() => null);
      await this.#lock?.release();
      this.#lock = lock;
      if (!this.#isOn) await this.#keepLit();
    }
  }
}
