"""Results of the tuner, which a user's own folder holds or another user has passed on."""

import msgspec
from fuzzing import Scratch, Target, nested
from mutation import mutate_json

from spectrod.fft.wisdom import Result, Wisdom, _valid_results, kernel_version

_SCRATCH = Scratch()
_OF = "platform", "device", "driver"


def check(data: bytes) -> None:
    """Read results for a device; those that are kept are of kernels that there are."""
    path = _SCRATCH.put("device.json", data)
    for key, result in _valid_results(path, *_OF).items():
        assert result.key == key
        assert result.kernels == kernel_version(result.family)


def seeds() -> list[bytes]:
    """Make a file of a result."""
    result = Result(
        n=64,
        kind="c2c",
        precision="single",
        family="local",
        params={"radices": [8, 8], "pad": 1},
        gb_per_s=10.0,
        untuned_gb_per_s=9.0,
        relative_l2=1e-7,
        kernels=kernel_version("local"),
    )
    platform, device, driver = _OF
    found = Wisdom(platform=platform, device=device, driver=driver, results=(result,))
    return [msgspec.json.encode(found)]


TARGETS = {"tuner_results": Target(check, seeds, mutate_json, large=nested)}
