"""Source text of an OpenCL program: defines, the shared header, one kernel file."""

import re
from pathlib import Path

import spectrod
from spectrod.lib.errors import InternalError

Defines = tuple[tuple[str, int], ...]
"""Names and values of a program's ``#define`` lines, in a fixed order."""

_HEADER = "common.clh"
_INCLUDE = re.compile(r'#include "([\w.]+)"')


def kernel_dir(package: Path | None = None) -> Path:
    """Find the folder of the kernel files.

    Parameters
    ----------
    package : Path, optional
        Folder of the spectrod package; by default of the imported one.

    Returns
    -------
    folder : Path
        ``spectrod/kernels`` in an installed wheel, ``kernels`` beside the package in a checkout.

    Raises
    ------
    InternalError
        If neither exists: the installation is broken.
    """
    package = package or Path(spectrod.__file__).parent
    for folder in (package / "kernels", package.parent / "kernels"):
        if (folder / _HEADER).is_file():
            return folder
    raise InternalError(f"no OpenCL kernels in {package}/kernels or beside it: install again")


def program_source(file: str, defines: Defines) -> str:
    """Assemble a program.

    Parameters
    ----------
    file : str
        Name of a file in the kernel folder, for example ``"fft_simd.cl"``. A line ``#include
        "NAME"`` inserts another file of the folder.
    defines : Defines
        Defines of the program.

    Returns
    -------
    text : str
        The defines, ``common.clh`` and the file, with markers that give the file and line in
        compiler logs. Equal texts are equal programs.
    """
    folder = kernel_dir()
    parts = [f"#define {name} {value}" for name, value in defines]
    parts += [_marked(folder, _HEADER), _marked(folder, file)]
    return "\n".join(parts) + "\n"


def _marked(folder: Path, name: str) -> str:
    """Return the text of a file with its includes inserted: drivers differ in where they search."""
    lines = [f'#line 1 "kernels/{name}"']
    for number, line in enumerate((folder / name).read_text(encoding="utf-8").splitlines(), 1):
        if include := _INCLUDE.fullmatch(line):
            lines += [_marked(folder, include[1]), f'#line {number + 1} "kernels/{name}"']
        else:
            lines.append(line)
    return "\n".join(lines)
