"""Where the lockfile of a tool is: beside the project that the tool's code belongs to."""

from collections.abc import Mapping
from os.path import lexists, normpath
from pathlib import Path
from typing import Final

FILE_NAME: Final = "tallystick.lock"
VARIABLE: Final = "TALLYSTICK_LOCKFILE"

ROOT_MARKS: Final = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
"""What a project's root folder holds, at least one of them."""


def lockfile_for(file: str | None, *, environment: Mapping[str, str], cwd: Path) -> Path:
    """Return the path of the lockfile that a tool belongs to, whether it is there or not.

    It is the one that the environment names; or else the nearest at or above the code, and no
    higher than the root of its project, where a new one is made. Code outside every project, such
    as a notebook's, belongs to the project around the working folder, or to that folder itself.

    Args:
        file: The tool's code, if it has a file.
        environment: The process's environment variables, of which `TALLYSTICK_LOCKFILE` counts.
        cwd: The working folder, absolute.
    """
    stated = environment.get(VARIABLE)
    if stated:
        return cwd / stated
    # A module found by way of `tests/..` is not code of `tests`.
    starts = [cwd] if file is None else [Path(normpath(cwd / file)).parent, cwd]
    return next((found for start in starts if (found := _upwards(start))), cwd / FILE_NAME)


def _upwards(start: Path) -> Path | None:
    """Return the first lockfile that is there, or should be, from a folder upwards."""
    for folder in (start, *start.parents):
        if any(lexists(f"{folder}/{each}") for each in (FILE_NAME, *ROOT_MARKS)):
            return folder / FILE_NAME
    return None
