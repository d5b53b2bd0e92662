"""The OpenCL devices that commands which measure work on."""

from spectrod.errors import DeviceError
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo, list_devices, matching


def working_devices(name: str) -> tuple[list[DeviceInfo], list[str]]:
    """Try the devices that a name means.

    Parameters
    ----------
    name : str
        As ``spectrod.opencl.devices.matching`` takes it; "" for all.

    Returns
    -------
    devices : list of DeviceInfo
        Those that can be opened and compile, best first; at least one.
    reasons : list of str
        Why the others do not.

    Raises
    ------
    DeviceError
        If none fits or none works.
    """
    devices, reasons = [], []
    for device in matching(name, list_devices()):
        try:
            Context(device).close()
        except DeviceError as error:
            reasons.append(str(error))
        else:
            devices.append(device)
    if not devices:
        raise DeviceError(reasons[0])
    return devices, reasons
