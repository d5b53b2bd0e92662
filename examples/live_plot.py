"""Plot a live spectrum with matplotlib: python live_plot.py [ENDPOINT [TOPIC_PREFIX]].

Needs pyzmq, numpy and matplotlib; nothing of spectrod.
"""

import json
import sys

import matplotlib.pyplot as plt
import numpy as np
import zmq
from matplotlib.animation import FuncAnimation

endpoint = sys.argv[1] if len(sys.argv) > 1 else "tcp://127.0.0.1:5556"
prefix = sys.argv[2] if len(sys.argv) > 2 else "spec/"

socket = zmq.Context.instance().socket(zmq.SUB)
socket.subscribe(prefix)
socket.connect(endpoint)

figure, axes = plt.subplots(layout="constrained")
axes.set(xscale="log", xlabel="Frequency [Hz]", title=f"waiting for {endpoint}")
axes.grid(visible=True, which="both", alpha=0.3)
lines = {}


def newest() -> dict[str, tuple[dict, bytes]]:
    """Read all that has arrived; return the last message of each topic."""
    messages = {}
    while socket.poll(0):
        topic, header, payload = socket.recv_multipart()
        messages[topic.decode()] = json.loads(header), payload
    return messages


def update(_: int) -> None:
    """Draw the newest spectrum of each channel."""
    for topic, (h, payload) in newest().items():
        values = np.frombuffer(payload, h["dtype"])
        unit = h["unit"]
        if not unit.startswith("dB"):
            values = 10 * np.log10(np.maximum(values, 1e-20))
            unit = f"dB re {unit}"
        f = (h.get("first_bin", 0) + np.arange(len(values))) * h["fs"] / h["nfft"]
        if topic not in lines:
            (lines[topic],) = axes.plot(f[1:], values[1:], linewidth=0.8, label=topic)
            if f[0] < 0:  # of I/Q, two-sided
                axes.set(xscale="linear", xlim=(f[0], f[-1]))
            else:
                axes.set(xlim=(max(20, f[1]), f[-1]))
            axes.set(ylim=(-140, 0), ylabel=f"Level [{unit}]")
            axes.legend(loc="upper right")
        lines[topic].set_data(f[1:], values[1:])
        axes.set_title(f"{h['fs']:g} Hz  {h['window']} {h['win_length']}  seq {h['seq']}")


animation = FuncAnimation(figure, update, interval=50, cache_frame_data=False)
plt.show()
