"""Imports the modules that declare tools, and says in one sentence which one fails, and where."""

import importlib
import os
import sys
import sysconfig
import traceback
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tallystick.errors import LocalRefusal, ModuleFailed

if TYPE_CHECKING:
    from tallystick.declaring import Declaration

NOTEBOOK: Final = "__main__"
"""The module of what was typed in a notebook or at a prompt: nobody can import it again."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Which modules are imported, and from where.

    Args:
        wanted: Those that somebody has named; each must be there.
        remembered: Those that only a lockfile names; one that is gone has taken its tools along.
        path: The folders that are searched before all others.
    """

    wanted: tuple[str, ...]
    remembered: tuple[str, ...]
    path: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the code declares.

    Args:
        declarations: Every declaration, as often as it is made.
        gone: The remembered modules that cannot be found.
    """

    declarations: "tuple[Declaration, ...]"
    gone: frozenset[str]

    def has_imported(self, module: str) -> bool:
        """Tell whether what a module declares is known: it was imported, or it is gone."""
        return module in self.gone or (module in sys.modules and module != NOTEBOOK)


def load(scope: Scope) -> Loaded:
    """Import the modules of a scope, without checking or writing any lockfile.

    What they print goes to stderr: stdout is for the answer alone.

    Raises:
        ModuleFailed: One of them cannot be imported; the detail says where the fault is.
    """
    from tallystick.declaring import collecting

    sys.path[:0] = [str(folder) for folder in scope.path]
    importlib.invalidate_caches()
    gone: set[str] = set()
    with collecting() as declarations, redirect_stdout(sys.stderr):
        for module in scope.wanted:
            _check_name(module)
            if not _import(module):
                folders = ", ".join(map(str, scope.path))
                raise ModuleFailed(
                    f"There is no module {module} in {folders}, nor is it installed."
                    " If it lies elsewhere, name its folder with --path."
                )
        for module in scope.remembered:
            if not _import(module):
                gone.add(module)
    return Loaded(tuple(declarations), frozenset(gone))


def _check_name(module: str) -> None:
    if all(part.isidentifier() for part in module.split(".")):
        return
    if module.endswith(".py"):
        guess = ".".join(Path(module).with_suffix("").parts).lstrip("./")
        raise ModuleFailed(f"{module} is a file: name the module, such as {guess}.")
    raise ModuleFailed(f"{module!r} is no name of a module, such as shop.tools.")


def _import(module: str) -> bool:
    """Import a module; return whether it is there.

    Raises:
        ModuleFailed: It is there, and its import fails.
    """
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            return False
        raise _failure(module, error) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # Also SystemExit, which a script raises that was not meant to be imported.
        raise _failure(module, error) from error
    return True


def _failure(module: str, error: BaseException) -> ModuleFailed:
    file, line = _place(error)
    at = "" if file is None else f", at {file}:{line}"
    return ModuleFailed(
        f"{module} cannot be imported{at}: {_sentence(error)}",
        facts={"module": module, "file": file, "line": line},
    )


def _sentence(error: BaseException) -> str:
    if isinstance(error, LocalRefusal):
        return error.detail
    if isinstance(error, SystemExit):
        return "it ends the process; guard what only a script does by `if __name__ == '__main__'`"
    first = next(iter(str(error).strip().splitlines()), "")
    told = error.msg if isinstance(error, SyntaxError) else first
    return f"{type(error).__name__}: {told}" if told else type(error).__name__


# Where code lies that is seldom at fault: its callers are.
_OURS: Final = f"{Path(__file__).parents[1]}{os.sep}"
_INSTALLED: Final = tuple(
    sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


def _place(error: BaseException) -> tuple[str | None, int | None]:
    """Return the file and line of the fault: the innermost that is the author's own."""
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<frozen", _OURS))
    ]
    own = [frame for frame in frames if not frame.filename.startswith(_INSTALLED)]
    innermost: Sequence[traceback.FrameSummary] = own or frames
    return (innermost[-1].filename, innermost[-1].lineno) if innermost else (None, None)
