"""Supervision of a capture process, without one."""

from types import SimpleNamespace

from spectrod.capture.layout import RawBlock
from spectrod.source.capture_process import StreamSettings
from spectrod.source.devices import Wanted
from spectrod.source.supervisor import Supervisor


def test_a_stop_does_not_wait_for_all_blocks_that_have_come():
    """They may be many, and small: what a stop finds unwritten stays so."""
    written = []

    def write(block):
        written.append(block.frame)
        supervisor._stopping.set()

    writer = SimpleNamespace(
        **dict.fromkeys(("overruns", "suspected", "suspected_samples"), 0),
        delivered_s=0.0,
        begin=lambda _: 0,
        write=write,
    )
    settings = StreamSettings(0, "ALSA", 48000.0, 1, "s16le", 1)
    supervisor = Supervisor(
        "card", Wanted(), settings, writer, on_change=lambda: None, on_end=lambda _: None
    )
    blocks = [RawBlock(i, 1, flagged=False, t_mono_ns=i, data=b"\0\0") for i in range(1000)]
    supervisor._process = SimpleNamespace(wait=lambda *_: blocks)
    supervisor._deliver()
    assert written == [0]
    supervisor._stop.close()
