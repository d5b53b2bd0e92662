"""OpenCL devices for commands that measure."""

from spectrod.lib.errors import DeviceError
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo, list_devices, matching


def working_devices(name: str) -> tuple[list[DeviceInfo], list[str]]:
    """Return the usable devices of a name.

    Parameters
    ----------
    name : str
        A name for ``spectrod.opencl.devices.matching``; "" for all devices.

    Returns
    -------
    devices : list of DeviceInfo
        Devices that can be opened and can compile, best first; at least one.
    reasons : list of str
        Reasons why the others are unusable.

    Raises
    ------
    DeviceError
        If no device matches or none is usable.
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
