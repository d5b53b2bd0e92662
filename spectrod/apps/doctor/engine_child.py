"""Tries OpenCL for ``doctor``: ``python -m spectrod.apps.doctor.engine_child DEVICE``.

Prints a line of JSON for each step, so that what was found before a crash is known.
"""

import json
import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("POCL_WORK_GROUP_SPECIALIZATION", "0")  # as the spectrod command does


def main(name: str) -> None:
    """List the devices, open the best one, and compute with it."""
    from spectrod.analysis.opencl_engine import open_opencl  # noqa: PLC0415 - after the environment
    from spectrod.apps.doctor.selftest import spectrum_error  # noqa: PLC0415
    from spectrod.lib.errors import SpectrodError  # noqa: PLC0415
    from spectrod.opencl.devices import list_devices  # noqa: PLC0415

    try:
        devices = list_devices()
        _say(devices=[{"name": one.label, "driver": one.driver} for one in devices])
        engine = open_opencl(name)
        try:
            _say(engine=engine.name, error=spectrum_error(engine, 4096))
        finally:
            engine.close()
    except SpectrodError as error:
        _say(reason=str(error).partition("\n")[0])


def _say(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
