"""Parts of a picture."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Area:
    """Lines and columns of a picture."""

    line: int
    column: int
    height: int
    width: int

    @property
    def slices(self) -> tuple[slice, slice]:
        """Index of the area in arrays of lines and columns."""
        lines = slice(self.line, self.line + self.height)
        return lines, slice(self.column, self.column + self.width)
