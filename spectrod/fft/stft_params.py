"""What shapes the code of ``stft_power.cl``, and its choice for a device."""

from dataclasses import dataclass, replace
from math import prod

from spectrod.errors import ConfigError, DeviceError
from spectrod.fft.stft_radices import PASSES_MAX, choose_radices
from spectrod.opencl.devices import DeviceInfo
from spectrod.opencl.source import Defines

_COMPLEX_BYTES = 8
_GPU_GROUP_ITEMS = 128
_GPU_LOCAL_PAD = 16


@dataclass(frozen=True, slots=True)
class StftParams:
    """Compile-time parameters of the fused window, transform and power kernel.

    Attributes
    ----------
    nfft, win_length : int
        Transform length, a power of two; samples under the window, 2 to nfft.
    radices : tuple of int
        Of the passes; their product is nfft / 2.
    item_values : int
        Complex values that a work-item holds in registers: a multiple of every radix.
    group_frames : int
        Frames that a work-group computes.
    local_buffers : {1, 2}
        Two halve the barriers, one halves the local memory.
    local_pad : int
        A gap of one value in local memory after so many, against bank conflicts; 0 for none.

    Raises
    ------
    ConfigError
        With the name, the value and the rule, if one is broken.
    """

    nfft: int
    win_length: int
    radices: tuple[int, ...]
    item_values: int = 8
    group_frames: int = 1
    local_buffers: int = 1
    local_pad: int = 0

    def __post_init__(self) -> None:
        if not 2 <= self.win_length <= self.nfft:
            raise ConfigError(f"win_length={self.win_length}: must be 2 to nfft={self.nfft}")
        if not set(self.radices) <= {2, 4, 8} or not 2 <= len(self.radices) <= PASSES_MAX:
            raise ConfigError(f"radices={self.radices}: must be 2 to {PASSES_MAX} of 2, 4 and 8")
        if 2 * prod(self.radices) != self.nfft:
            raise ConfigError(f"radices={self.radices}: must multiply to nfft/2={self.nfft // 2}")
        if self.item_values % max(self.radices) or self.nfft % (2 * self.item_values):
            raise ConfigError(
                f"item_values={self.item_values}: must be a multiple of each radix and divide "
                f"nfft/2={self.nfft // 2}"
            )
        if self.group_frames < 1:
            raise ConfigError(f"group_frames={self.group_frames}: must be at least 1")
        if self.local_buffers not in (1, 2):
            raise ConfigError(f"local_buffers={self.local_buffers}: must be 1 or 2")
        if self.local_pad < 0:
            raise ConfigError(f"local_pad={self.local_pad}: must not be negative")

    @property
    def items(self) -> int:
        """Work-items that compute one frame."""
        return self.nfft // 2 // self.item_values

    @property
    def local_bytes(self) -> int:
        """Local memory of a work-group [bytes]."""
        half = self.nfft // 2
        gaps = half // self.local_pad if self.local_pad else 0
        return self.group_frames * self.local_buffers * (half + gaps) * _COMPLEX_BYTES

    def defines(self) -> Defines:
        """Names and values for the compiler, in a fixed order."""
        radices = self.radices + (1,) * (PASSES_MAX - len(self.radices))
        return (
            ("NFFT", self.nfft),
            ("WIN_LENGTH", self.win_length),
            ("N_PASSES", len(self.radices)),
            *((f"RADIX_{i}", radix) for i, radix in enumerate(radices, 1)),
            ("ITEM_VALUES", self.item_values),
            ("GROUP_FRAMES", self.group_frames),
            ("LOCAL_BUFFERS", self.local_buffers),
            ("LOCAL_PAD", self.local_pad),
        )

    def check(self, device: DeviceInfo) -> None:
        """Raise DeviceError, naming the limit, if the device cannot run this shape."""
        group_items = self.items * self.group_frames
        if group_items > device.max_work_group_size:
            raise DeviceError(
                f"nfft={self.nfft} needs work-groups of {group_items} items; "
                f"{device.label} allows {device.max_work_group_size}"
            )
        if self.local_bytes > device.local_mem_bytes:
            raise DeviceError(
                f"nfft={self.nfft} needs {self.local_bytes} bytes of local memory; "
                f"{device.label} has {device.local_mem_bytes}"
            )


def choose_params(nfft: int, win_length: int, device: DeviceInfo) -> StftParams:
    """Choose a shape for a device.

    CPUs get one frame a work-group and two buffers: there a barrier ends a vectorised loop, and
    local memory is ordinary memory. GPUs get work-groups of about 128 items, one padded buffer.
    Where that is more local memory than there is, one frame in one buffer without gaps must do.
    ``kernels/README.md`` has what was measured.

    Parameters
    ----------
    nfft, win_length : int
        As in ``StftParams``.
    device : DeviceInfo
        Whose limits must be kept.

    Returns
    -------
    params : StftParams
        Within the device's limits.

    Raises
    ------
    DeviceError
        If the device is too small for this length.
    """
    radices = choose_radices(nfft // 2)
    values = _item_values(nfft, device)
    items = nfft // 2 // values
    smallest = StftParams(nfft, win_length, radices, values)
    if device.kind == "cpu":
        params = replace(smallest, local_buffers=2)
    else:
        frames = max(1, min(_GPU_GROUP_ITEMS, device.max_work_group_size) // items)
        params = replace(smallest, group_frames=frames, local_pad=_GPU_LOCAL_PAD)
    if params.local_bytes > device.local_mem_bytes:
        params = smallest
    params.check(device)
    return params


def _item_values(nfft: int, device: DeviceInfo) -> int:
    """Fewest values, 8 to 32, with which a frame's items fit into a work-group."""
    fitting = (v for v in (8, 16) if nfft // 2 // v <= device.max_work_group_size)
    return next(fitting, 32)
