from dataclasses import replace
from types import SimpleNamespace

import pytest

from spectrod.errors import ConfigError, DeviceError
from spectrod.fft.stft_params import StftParams, choose_params

GOOD = StftParams(64, 63, (8, 4))


def device(kind="gpu", group=1024, local=49_152):
    return SimpleNamespace(kind=kind, max_work_group_size=group, local_mem_bytes=local, label="P/D")


def test_defines_come_in_one_order_with_every_radix():
    """The compiler's names are complete; passes that do not run have radix 1."""
    assert GOOD.defines() == (
        ("NFFT", 64),
        ("WIN_LENGTH", 63),
        ("N_PASSES", 2),
        ("RADIX_1", 8),
        ("RADIX_2", 4),
        ("RADIX_3", 1),
        ("RADIX_4", 1),
        ("ITEM_VALUES", 8),
        ("GROUP_FRAMES", 1),
        ("LOCAL_BUFFERS", 1),
        ("LOCAL_PAD", 0),
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"win_length": 1}, "win_length=1: must be 2 to nfft=64"),
        ({"win_length": 65}, "win_length=65: must be 2 to nfft=64"),
        ({"radices": (16, 2)}, r"radices=\(16, 2\): must be 2 to 4 of 2, 4 and 8"),
        ({"radices": (2, 2, 2, 2, 2)}, "must be 2 to 4 of 2, 4 and 8"),
        ({"radices": (8, 8)}, r"radices=\(8, 8\): must multiply to nfft/2=32"),
        ({"item_values": 4}, "item_values=4: must be a multiple of each radix"),
        ({"item_values": 64}, "item_values=64: .* divide nfft/2=32"),
        ({"group_frames": 0}, "group_frames=0: must be at least 1"),
        ({"local_buffers": 3}, "local_buffers=3: must be 1 or 2"),
        ({"local_pad": -1}, "local_pad=-1: must not be negative"),
    ],
)
def test_a_broken_rule_is_named(change, message):
    """Each rule of a shape is checked before anything is compiled."""
    with pytest.raises(ConfigError, match=message):
        replace(GOOD, **change)


def test_local_memory_counts_buffers_frames_and_gaps():
    """Two frames, two buffers of 32 complex values and a gap after each 16."""
    params = replace(GOOD, group_frames=2, local_buffers=2, local_pad=16)
    assert params.local_bytes == 2 * 2 * (32 + 2) * 8


@pytest.mark.parametrize("nfft", [64, 128, 256, 512, 1024, 2048, 4096, 8192])
@pytest.mark.parametrize(
    "target",
    [
        device(),
        device(group=256, local=32_768),
        device("cpu", 4096, 65_536),
        device("cpu", 4096, 32_768),
    ],
)
def test_a_choice_keeps_the_limits(nfft, target):
    """GPUs with small groups and CPUs get every length within their limits."""
    params = choose_params(nfft, nfft - 1, target)
    assert params.items * params.group_frames <= target.max_work_group_size
    assert params.local_bytes <= target.local_mem_bytes


def test_a_gpu_gets_several_small_frames_a_group():
    """Short frames share a work-group, long ones have one of their own."""
    assert choose_params(64, 64, device()).group_frames == 32
    assert choose_params(8192, 8192, device()).group_frames == 1


def test_a_cpu_gets_one_frame_a_group():
    """On a CPU a frame's items are the lanes of a vector."""
    assert choose_params(64, 64, device("cpu")).group_frames == 1


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (device(group=1), "nfft=8192 needs work-groups of 128 items; P/D allows 1"),
        (device(local=16_384), "nfft=8192 needs 32768 bytes of local memory; P/D has 16384"),
    ],
)
def test_too_small_a_device_is_named_with_its_limit(target, message):
    """A device that cannot run a length says which limit is in the way."""
    with pytest.raises(DeviceError, match=message):
        choose_params(8192, 8192, target)
