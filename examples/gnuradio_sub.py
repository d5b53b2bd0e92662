"""Read a daemon's spectra in GNU Radio, as vectors of floats, and print the highest bin.

    python3 gnuradio_sub.py [ENDPOINT [BINS [HZ_PER_BIN]]]

Needs GNU Radio 3.10 (Debian: gnuradio), with the Python that it is installed for, and a daemon with

    [publish]
    raw32 = ["tcp://127.0.0.1:5558 spec/mic/0/dbfs/"]

Such vectors say nothing of themselves: BINS is nfft // 2 + 1 (2049) and HZ_PER_BIN is fs / nfft
(48000 / 4096).
"""

import sys
import time

import numpy as np
from gnuradio import blocks, gr, zeromq

TIMEOUT_MS = 100
PASS_TAGS = False
HIGH_WATER_MARK = -1  # ZeroMQ's own


def main(
    endpoint: str = "tcp://127.0.0.1:5558", n_bins: str = "2049", hz_per_bin: str = "11.71875"
) -> None:
    """Print the newest vector's highest bin once a second until Ctrl-C."""
    n = int(n_bins)
    flowgraph = gr.top_block()
    source = zeromq.sub_source(gr.sizeof_float, n, endpoint, TIMEOUT_MS, PASS_TAGS, HIGH_WATER_MARK)
    newest = blocks.probe_signal_vf(n)
    flowgraph.connect(source, newest)
    flowgraph.start()
    try:
        while True:
            time.sleep(1.0)
            values = np.array(newest.level())
            k = int(values.argmax())
            print(f"{k * float(hz_per_bin):.1f} Hz {values[k]:.2f}", flush=True)
    finally:
        flowgraph.stop()
        flowgraph.wait()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)
