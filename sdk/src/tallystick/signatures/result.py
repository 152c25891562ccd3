"""From a return annotation to the schema of the result."""

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Coroutine, Generator, Iterator
from functools import cache
from types import FunctionType
from typing import Annotated, Any, Final, Never, NoReturn, get_args, get_origin

from tallystick.canonical import Json
from tallystick.errors import SignatureUnsupported
from tallystick.signatures.annotations import RETURN, place_of, resolved
from tallystick.signatures.arguments import described
from tallystick.signatures.schema import NoJsonForm, schema_of

_STREAMS: Final = (AsyncGenerator, AsyncIterator, Generator, Iterator)
_LATER: Final = (Awaitable, Coroutine)
_NEVER: Final = (Never, NoReturn)


def output_schema(
    annotation: object, definition: FunctionType, tool: str, description: str | None
) -> dict[str, Json] | None:
    """Return the schema of what a function returns, or of what its coroutine does.

    Args:
        annotation: The return annotation, or `Signature.empty`.
        definition: The function.
        tool: The tool's name, for messages.
        description: What the docstring says of the result.

    Returns:
        The schema; None if nothing is annotated, if nothing is ever returned, and for generators
        and iterators: what they yield one by one is no result.

    Raises:
        SignatureUnsupported: It has no JSON form.
    """
    if (
        annotation is inspect.Signature.empty
        or inspect.isgeneratorfunction(definition)
        or inspect.isasyncgenfunction(definition)
    ):
        return None
    result = _awaited(resolved({RETURN: annotation}, definition, tool)[RETURN])
    if (get_origin(result) or result) in (*_STREAMS, *_LATER, *_NEVER):
        return None
    try:
        schema = _kept(result) if _is_of_builtins(result) else schema_of(result, "serialization")
    except NoJsonForm as error:
        raise SignatureUnsupported(
            f"{tool}: {place_of(RETURN)}: {described(result)} has no JSON form; annotate the JSON"
            f" that it returns, or state output_schema= ({error})",
            facts={"tool": tool, "parameter": RETURN},
        ) from error
    if description is not None and not _is_described(result):
        return {**schema, "description": description}
    return schema


@cache  # most tools return one of a few types, and Pydantic takes longer than all that is ours
def _kept(annotation: object) -> dict[str, Json]:
    return schema_of(annotation, "serialization")


def _is_of_builtins(annotation: object) -> bool:
    """Tell whether an annotation names builtin types alone, so that equal ones mean the same.

    Others need not: a union and a `Literal` are equal to one in another order.
    """
    kind = get_origin(annotation) or annotation
    is_builtin = kind is Any or (type(kind) is type and kind.__module__ == "builtins")
    return is_builtin and all(map(_is_of_builtins, get_args(annotation)))


def _awaited(annotation: object) -> object:
    arguments = get_args(annotation)
    return arguments[-1] if arguments and get_origin(annotation) in _LATER else annotation


def _is_described(annotation: object) -> bool:
    """Return whether an annotation describes itself, as with Pydantic's `Field(description=)`."""
    metadata = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return any(getattr(each, "description", None) for each in metadata)
