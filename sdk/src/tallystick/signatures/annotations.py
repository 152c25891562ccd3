"""What annotations mean: names in them are looked up where the code stands that has them."""

import inspect
from collections.abc import Mapping
from types import FunctionType, SimpleNamespace
from typing import Annotated, Any, Final, cast, get_args, get_origin, get_type_hints

from tallystick.errors import SignatureUnsupported
from tallystick.signatures.terms import Injected

RETURN: Final = "return"

_FAULTS: Final = (AttributeError, NameError, SyntaxError, TypeError, ValueError, RecursionError)


def resolved(
    annotations: Mapping[str, object], definition: FunctionType, tool: str
) -> dict[str, object]:
    """Return a function's annotations, those that are written as text evaluated.

    Args:
        annotations: The annotations by the names of parameters, and by `RETURN`.
        definition: The function.
        tool: The tool's name, for messages.

    Raises:
        SignatureUnsupported: One cannot be evaluated.
    """
    enclosing = _enclosing_names(definition)
    try:
        return _evaluated(annotations, definition, enclosing)
    except _FAULTS:
        for name, annotation in annotations.items():
            try:
                _evaluated({name: annotation}, definition, enclosing)
            except _FAULTS as error:
                raise _unresolved(tool, name, error) from None
        raise


def place_of(name: str) -> str:
    """Return the words for what has an annotation, by its name."""
    return "the return value" if name == RETURN else f"parameter `{name}`"


def is_injected(annotation: object) -> bool:
    """Return whether an annotation says that its parameter is filled in at run time."""
    if get_origin(annotation) is not Annotated:
        return False
    return any(each is Injected or isinstance(each, Injected) for each in get_args(annotation)[1:])


def _evaluated(
    annotations: Mapping[str, object], definition: FunctionType, enclosing: dict[str, Any]
) -> dict[str, object]:
    holder = SimpleNamespace(
        __annotations__=dict(annotations),
        __type_params__=getattr(definition, "__type_params__", ()),
    )
    names = definition.__globals__
    return get_type_hints(cast("Any", holder), names, {**enclosing} or None, include_extras=True)


def _enclosing_names(definition: FunctionType) -> dict[str, Any]:
    """Return the names of the functions and class bodies around a function, as far as they run.

    A decorator runs while they do, and text may name what is defined only there.
    """
    scopes: list[dict[str, Any]] = []
    frame = inspect.currentframe() if "." in definition.__qualname__ else None
    while frame is not None:
        is_around = definition.__qualname__.startswith(f"{frame.f_code.co_qualname}.")
        if is_around and frame.f_globals is definition.__globals__:
            scopes.append(frame.f_locals)
        frame = frame.f_back
    return {name: value for scope in reversed(scopes) for name, value in scope.items()}


def _unresolved(tool: str, name: str, error: Exception) -> SignatureUnsupported:
    facts: dict[str, Any] = {"tool": tool, "parameter": name}
    if isinstance(error, NameError) and error.name is not None:
        facts["name"] = error.name
        reason = (
            f"`{error.name}` in its annotation is not defined; define it before, at run time too"
            " (not under TYPE_CHECKING alone)"
        )
        if name != RETURN:
            reason += f", or state injected=('{name}',) if no caller gives it"
    else:
        reason = f"its annotation cannot be evaluated: {error}"
    return SignatureUnsupported(f"{tool}: {place_of(name)}: {reason}", facts=facts)
