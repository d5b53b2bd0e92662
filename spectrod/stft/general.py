"""A family of stages."""

from collections.abc import Iterable
from typing import Any

from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo
from spectrod.stft.stage import StftSpec, StftStage, StftTables


class GeneralStft:
    """None yet."""

    name = "general"

    def supports(self, spec: StftSpec, device: DeviceInfo) -> bool:  # noqa: ARG002
        """Nothing."""
        return False

    def candidates(self, spec: StftSpec, device: DeviceInfo) -> Iterable[Any]:  # noqa: ARG002
        """None."""
        return ()

    def build(
        self, context: Context, spec: StftSpec, tables: StftTables, params: Any = None
    ) -> StftStage:
        """Refuse."""
        raise NotImplementedError


GENERAL = GeneralStft()
