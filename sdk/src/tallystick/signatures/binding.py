"""From the JSON arguments of a call to what a function takes: dates, models, decimals, and more.

Pydantic reads them, as it made the schema that they have passed.
"""

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import Any, cast

from tallystick.canonical import Json, pointer_join
from tallystick.errors import InvalidArguments
from tallystick.signatures.arguments import parameters_given
from tallystick.signatures.target import definition_of, signature_of


@dataclass(frozen=True, slots=True)
class Binding:
    """How a function is given its arguments.

    Args:
        read: Makes the keyword arguments of the JSON arguments.
        injected: The parameters that no caller gives, by name.
        needed: Those of them that have no default.
    """

    read: Callable[[Mapping[str, Json]], dict[str, object]]
    injected: frozenset[str]
    needed: frozenset[str]


def binding_of(target: object, injected: Collection[str], tool: str) -> Binding:
    """Return how a function, or what stands for one, is given its arguments.

    Args:
        target: The function, method or callable object.
        injected: Names of parameters that are filled in at run time, beside those marked so.
        tool: The tool's name, for messages.

    Raises:
        SignatureUnsupported: A parameter cannot be given by name.
    """
    from pydantic import TypeAdapter, ValidationError
    from pydantic_core import ArgsKwargs

    definition, signature = definition_of(target), signature_of(target)
    given = parameters_given(signature, cast("Any", definition), injected, tool)

    def arguments(**members: object) -> dict[str, object]:
        """Stand for the function: what Pydantic would call it with is the answer."""
        return members

    cast("Any", arguments).__signature__ = inspect.Signature([_by_name(each) for each in given])
    arguments.__annotations__ = {
        each.name: each.annotation for each in given if each.annotation is not Parameter.empty
    }
    validate = TypeAdapter[Any](cast("Any", arguments)).validator.validate_python

    def read(members: Mapping[str, Json]) -> dict[str, object]:
        try:
            return validate(ArgsKwargs((), dict(members)))
        except ValidationError as error:
            # The function's own validators: the schema has let the values pass.
            faults = error.errors(include_url=False, include_context=False, include_input=False)
            told = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in faults)
            raise InvalidArguments(
                f"Invalid arguments for {tool}: {told}", pointer=pointer_join(*faults[0]["loc"])
            ) from None

    names = signature.parameters.keys() - {each.name for each in given}
    needed = {name for name in names if signature.parameters[name].default is Parameter.empty}
    return Binding(read, frozenset(names), frozenset(needed))


def _by_name(parameter: Parameter) -> Parameter:
    if parameter.kind is Parameter.VAR_KEYWORD:
        return parameter
    return parameter.replace(kind=Parameter.KEYWORD_ONLY)
