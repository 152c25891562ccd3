"""What a target is: the function or class behind it, where that stands, and what it takes."""

import functools
import inspect
import linecache
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any, Final, cast

from tallystick.errors import SignatureUnsupported

_RECEIVERS: Final = (["self"], ["cls"])
# The running program, and what it is in a process that `multiprocessing` spawns for it.
_MAIN: Final = ("__main__", "__mp_main__")
_CALL: Final = ".__call__"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a target is defined.

    Args:
        module: The module, by the name under which it can be imported.
        qualname: The qualified name in it.
        file: The absolute path of the source file, if there is one.
        line: The line where the definition begins, decorators included; None if nobody knows.
    """

    module: str
    qualname: str
    file: str | None
    line: int | None

    @property
    def source(self) -> str:
        """The place as `module:qualname`."""
        return f"{self.module}:{self.qualname}"


def definition_of(target: object) -> FunctionType | type:
    """Return the function or class behind a target.

    Looks through `staticmethod`, `classmethod`, `functools.partial`, bound methods, decorators that
    use `functools.wraps`, and objects that can be called.

    Raises:
        SignatureUnsupported: There is none that is written in Python.
    """
    if type(target) is FunctionType and not target.__dict__:  # most of them; nothing is beneath
        return target
    found = target
    while (beneath := _beneath(found)) is not None:
        found = beneath
    if isinstance(found, type | FunctionType):
        return found
    raise SignatureUnsupported(_no_definition(target))


def origin_of(target: object) -> Origin:
    """Return where a target is defined.

    Raises:
        SignatureUnsupported: It is nothing that is defined in Python.
    """
    definition = definition_of(target)
    module = definition.__module__
    if isinstance(definition, FunctionType):
        names, code = definition.__globals__, definition.__code__
        file, line = code.co_filename, code.co_firstlineno
    else:
        names = vars(sys.modules[module]) if module in sys.modules else {}
        file = names.get("__file__")
        line = None if file is None else _line_of_class(file, definition)
    return Origin(
        module=_main_name(names) if module in _MAIN else module,
        qualname=definition.__qualname__.removesuffix(_CALL),
        file=None if file is None or file.startswith("<") else _absolute(file),
        line=line,
    )


def signature_of(target: object) -> inspect.Signature:
    """Return a target's signature as its caller sees it: without a method's `self` or `cls`.

    A plain function in a class body may be meant as a static method, which nobody can see until
    the class is there: so its first parameter is left out by its name.

    Raises:
        SignatureUnsupported: The target has no signature.
    """
    definition = definition_of(target)
    is_in_body = isinstance(target, staticmethod | classmethod)
    function = cast("Any", cast("Any", target).__func__ if is_in_body else target)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise SignatureUnsupported(_no_definition(target)) from None
    names = [*signature.parameters]
    scope = definition.__qualname__.rpartition(".")[0]
    is_in_class = scope != "" and not scope.endswith("<locals>")
    is_named_so = is_in_class and not isinstance(target, staticmethod) and names[:1] in _RECEIVERS
    if isinstance(target, classmethod) or is_named_so:
        return signature.replace(parameters=[*signature.parameters.values()][1:])
    return signature


def call_of(target: object) -> object:
    """Return what the class of a target says that a call of it does, or None."""
    return inspect.getattr_static(type(target), "__call__", None)


def _beneath(target: object) -> object:
    """Return what stands one layer below, or None at a definition or at something foreign."""
    if isinstance(target, type):
        return None
    if isinstance(target, functools.partial):
        return cast("functools.partial[object]", target).func
    for layer in ("__func__", "__wrapped__"):
        # Looked up past `__getattr__`, by which some objects claim to have everything.
        if inspect.getattr_static(target, layer, None) is not None:
            return getattr(target, layer)
    call = call_of(target)
    return call if isinstance(call, FunctionType) else None


def _absolute(file: str) -> str:
    # Nearly all of them are, and a `Path` takes longer than all else that is asked of a target.
    return file if file.startswith("/") else str(Path(file).absolute())


def _no_definition(target: object) -> str:
    described = getattr(target, "__qualname__", None) or f"a {type(target).__name__}"
    return (
        f"{described}: not a function, method or class written in Python;"
        " declare the function that does the work"
    )


def _main_name(names: Mapping[str, Any]) -> str:
    """Return the name under which the running program, which has these names, can be imported."""
    spec, file = names.get("__spec__"), names.get("__file__")
    if spec is not None and spec.name not in _MAIN:
        return spec.name.removesuffix(".__main__")
    return "__main__" if file is None else Path(file).stem


def _line_of_class(file: str, definition: type) -> int | None:
    known = getattr(definition, "__firstlineno__", None)  # since Python 3.13
    if known is not None:
        return known
    text = "".join(linecache.getlines(file))
    found = re.search(rf"^[ \t]*class[ \t]+{definition.__name__}\b", text, re.MULTILINE)
    return None if found is None else text.count("\n", 0, found.start()) + 1
