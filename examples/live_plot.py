"""Plot a live spectrum with matplotlib.

    python live_plot.py [ENDPOINT [PREFIX]] [--key ME.key --server-key BOX.pub]
    python live_plot.py --save PICTURE.png [ENDPOINT [PREFIX]]       without a screen

Needs pyzmq, numpy and matplotlib, and subscribe.py beside it.
"""

import argparse
import sys
from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import zmq
from matplotlib.animation import FuncAnimation
from subscribe import Losses, Message, connect, decode

DRAWN_A_TURN = 1000  # messages read before a drawing, so that a flood does not stop it


class Plot:
    """One line for each topic, and what was missed in the title."""

    def __init__(self, title: str) -> None:
        self.figure, self._axes = plt.subplots(layout="constrained")
        self._axes.set(xscale="log", xlabel="Frequency [Hz]", title=title)
        self._axes.grid(visible=True, which="both", alpha=0.3)
        self._lines = {}
        self._missed = 0
        self._restarts = 0

    def draw(self, messages: list[Message]) -> None:
        """Draw the newest spectrum of each topic."""
        self._missed += sum(message.missed for message in messages)
        self._restarts += sum(message.restarted for message in messages)
        for topic, message in {message.topic: message for message in messages}.items():
            h, values, unit = message.header, message.values, message.header["unit"]
            if not unit.startswith("dB"):
                values, unit = 10 * np.log10(np.maximum(values, 1e-20)), f"dB re {unit}"
            f = (h.get("first_bin", 0) + np.arange(len(values))) * h["fs"] / h["nfft"]
            f += h.get("center_frequency_hz", 0.0)
            if topic not in self._lines:
                self._add(topic, f, unit, is_two_sided=h.get("first_bin", 0) < 0)
            self._lines[topic].set_data(f[1:], values[1:])
            losses = f"  missed {self._missed}  restarts {self._restarts}"
            title = f"{h['fs']:g} Hz  {h['window']} {h['win_length']}  seq {h['seq']}"
            self._axes.set_title(title + losses * bool(self._missed or self._restarts))

    def _add(self, topic: str, f: np.ndarray, unit: str, *, is_two_sided: bool) -> None:
        (self._lines[topic],) = self._axes.plot(f[1:], f[1:], linewidth=0.8, label=topic)
        if is_two_sided:  # of I/Q
            self._axes.set(xscale="linear", xlim=(f[0], f[-1]))
        else:
            self._axes.set(xlim=(max(20, f[1]), f[-1]))
        self._axes.set(ylim=(-140, 0), ylabel=f"Level [{unit}]")
        self._axes.legend(loc="upper right")


def newest(socket: zmq.Socket, losses: Losses) -> Iterator[Message]:
    """Yield what has arrived."""
    for _ in range(DRAWN_A_TURN):
        if not socket.poll(0):
            return
        try:
            yield losses.compare(decode(socket.recv_multipart()))
        except ValueError as error:
            print(f"left out: {error}", file=sys.stderr)


def main() -> None:
    """Show a window until it is closed, or save one picture."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("endpoint", nargs="?", default="tcp://127.0.0.1:5556")
    parser.add_argument("prefix", nargs="?", default="spec/", help="topics wanted (%(default)s)")
    parser.add_argument("--save", metavar="PNG", help="save the first spectra, and end")
    parser.add_argument("--key", metavar="ME.key", help="who I am (spectrod keys new)")
    parser.add_argument("--server-key", metavar="BOX.pub", help="public key of the daemon")
    args = parser.parse_args()
    socket = connect(args.endpoint, args.prefix, key=args.key, server_key=args.server_key)
    plot, losses = Plot(f"waiting for {args.endpoint}"), Losses()
    if args.save:
        socket.poll()
        plot.draw(list(newest(socket, losses)))
        plot.figure.savefig(args.save)
        return
    # matplotlib stops an animation that nobody holds.
    animation = FuncAnimation(
        plot.figure,
        lambda _: plot.draw(list(newest(socket, losses))),
        interval=50,
        cache_frame_data=False,
    )
    plt.show()
    del animation


if __name__ == "__main__":
    main()
