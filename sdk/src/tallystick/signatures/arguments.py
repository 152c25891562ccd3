"""From a signature to the schema of the arguments, which are one JSON object."""

import inspect
from collections.abc import Iterable, Sequence
from inspect import Parameter
from types import FunctionType
from typing import Any, Final, cast

from tallystick.canonical import Json
from tallystick.errors import SignatureUnsupported
from tallystick.signatures.annotations import is_injected, place_of, resolved
from tallystick.signatures.schema import NoJsonForm, schema_of

_UNNAMED: Final = {
    Parameter.VAR_POSITIONAL: "takes any number of positional arguments",
    Parameter.POSITIONAL_ONLY: "is positional-only",
}


def parameters_given(
    signature: inspect.Signature, definition: FunctionType, injected: Iterable[str], tool: str
) -> list[Parameter]:
    """Return the parameters that a caller gives by name, their annotations evaluated.

    Args:
        signature: The signature.
        definition: The function that its annotations were written for.
        injected: Names of parameters that no caller gives.
        tool: The tool's name, for messages.

    Raises:
        SignatureUnsupported: A parameter cannot be given by name, an annotation cannot be
            evaluated, or an injected name is no parameter's.
    """
    for name in injected:
        if name not in signature.parameters:
            raise SignatureUnsupported(
                f"{tool}: injected names `{name}`, and there is no such parameter",
                facts={"tool": tool, "parameter": name},
            )
    asked = [each for name, each in signature.parameters.items() if name not in {*injected}]
    annotations = {
        each.name: each.annotation for each in asked if each.annotation is not Parameter.empty
    }
    meant = resolved(annotations, definition, tool)
    given = [
        each if each.annotation is meaning else each.replace(annotation=meaning)
        for each in asked
        if not is_injected(meaning := meant.get(each.name, Parameter.empty))
    ]
    for each in given:
        if each.kind in _UNNAMED:
            raise SignatureUnsupported(
                f"{tool}: {place_of(each.name)} {_UNNAMED[each.kind]}, and the arguments of a"
                " tool go by name",
                facts={"tool": tool, "parameter": each.name},
            )
    return given


def input_schema(parameters: Sequence[Parameter], tool: str) -> dict[str, Json]:
    """Return the schema of the arguments, its properties in the order of the parameters.

    Args:
        parameters: As `parameters_given` returns them.
        tool: The tool's name, for messages.

    Raises:
        SignatureUnsupported: A parameter or its default has no JSON form.
    """
    try:
        return _schema(parameters)
    except NoJsonForm as error:
        for each in parameters:
            check_parameter(each, tool)
        raise SignatureUnsupported(
            f"{tool}: the arguments have no JSON form: {error}", facts={"tool": tool}
        ) from error


def _schema(parameters: Sequence[Parameter]) -> dict[str, Json]:
    def arguments() -> None:
        """Stand for the function: Pydantic reads its signature and never calls it."""

    cast("Any", arguments).__signature__ = inspect.Signature(parameters)
    arguments.__annotations__ = {
        each.name: each.annotation for each in parameters if each.annotation is not Parameter.empty
    }
    return schema_of(arguments, "validation")


def check_parameter(parameter: Parameter, tool: str) -> None:
    """Refuse a parameter that has no JSON form by itself.

    Raises:
        SignatureUnsupported: It, or its default, has none.
    """
    facts: dict[str, Json] = {"tool": tool, "parameter": parameter.name}
    try:
        _schema([parameter.replace(default=Parameter.empty)])
    except NoJsonForm as error:
        raise SignatureUnsupported(
            f"{tool}: {place_of(parameter.name)}: {described(parameter.annotation)} has no JSON"
            " form; mark it with Injected if no caller gives it, or give it a type that JSON can"
            f" say ({error})",
            facts=facts,
        ) from error
    try:
        _schema([parameter])
    except NoJsonForm as error:
        raise SignatureUnsupported(
            f"{tool}: {place_of(parameter.name)}: its default, of type"
            f" {type(parameter.default).__name__}, has no JSON form; use None, or mark the"
            " parameter with Injected if no caller gives it",
            facts=facts,
        ) from error


def described(annotation: object) -> str:
    """Return an annotation as its author may have written it."""
    if isinstance(annotation, type) and not hasattr(annotation, "__args__"):
        module = annotation.__module__
        return f"{module}.{annotation.__qualname__}".removeprefix("builtins.")
    return str(annotation)
