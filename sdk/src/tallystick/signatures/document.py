"""The whole contract document of a target: what its code says, and what its author states."""

import json
import re
from collections.abc import Iterable, Mapping
from inspect import Parameter
from types import FunctionType
from typing import Any, ClassVar, Final, cast, get_origin, get_type_hints

from tallystick.canonical import Json, MalformedJson, check_json, pointer_join, pointer_split
from tallystick.errors import SignatureUnsupported
from tallystick.signatures.annotations import place_of
from tallystick.signatures.arguments import (
    check_parameter,
    input_schema,
    parameters_given,
)
from tallystick.signatures.docstring import read_docstring
from tallystick.signatures.naming import name_of
from tallystick.signatures.result import output_schema
from tallystick.signatures.schema import NoJsonForm, schema_of
from tallystick.signatures.target import call_of, definition_of, origin_of, signature_of
from tallystick.signatures.terms import ContractFields, Terms

# Where in a document the schema of one parameter stands.
_PROPERTIES: Final = ("input_schema", "properties")
# What tells a model of Pydantic, a dataclass and a typed dictionary from any other class.
_HAS_FIELDS: Final = ("__pydantic_core_schema__", "__dataclass_fields__", "__total__")
# What may be outside strict JSON: NUL, surrogates, numbers that are not exact everywhere.
_DOUBTFUL: Final = tuple(map(re.compile, (r"\\u(?:0000|d[89a-f])", "[0-9]{16}", r"e\+")))


def document_of(target: object, terms: Terms) -> dict[str, Json]:
    """Return the contract document of a function, method, model, dataclass or typed dictionary.

    It has no `version` unless the terms state one; with one, it is what `Contract.parse` reads.

    Raises:
        SignatureUnsupported: No contract can be made of the target; the sentence names the
            parameter at fault.
    """
    tool = name_of(origin_of(target), terms.name)
    for field in terms.fields:
        if field not in ContractFields.__annotations__:
            raise SignatureUnsupported(
                f"{tool}: {field} is no field that can be stated", facts={"tool": tool}
            )
    definition = definition_of(target)
    if isinstance(definition, type):
        text = _of_class(definition, terms, tool)
    else:
        text = _of_function(target, definition, terms, tool)
    document = {
        "name": tool,
        **({} if terms.version is None else {"version": terms.version}),
        **text,
        "capabilities": sorted(terms.capabilities),
        "effect_class": terms.effect_class,
        **{field: value for field, value in terms.fields.items() if value is not None},
    }
    if not document["description"]:
        raise SignatureUnsupported(
            f"{tool} has no docstring, and a model chooses a tool by its text; write one, or"
            " state description=",
            facts={"tool": tool},
        )
    return _strict(document, tool)


def _of_function(
    target: object, definition: FunctionType, terms: Terms, tool: str
) -> dict[str, Json]:
    signature = signature_of(target)
    parameters = parameters_given(signature, definition, terms.injected, tool)
    arguments = input_schema(parameters, tool)
    # An object that can be called is explained at its method or at its class.
    is_object = call_of(target) is definition
    docstring = read_docstring(definition.__doc__ or (type(target).__doc__ if is_object else None))
    # A property may bear an alias: only its place says which parameter it is.
    names = [each.name for each in parameters if each.kind is not Parameter.VAR_KEYWORD]
    properties = cast("dict[str, dict[str, Json]]", arguments["properties"])
    names += [*properties][len(names) :]  # the fields of an unpacked typed dictionary
    _describe(zip(names, properties.values(), strict=False), docstring.parameters)
    told: dict[str, Json] = {"description": docstring.description, "input_schema": arguments}
    if terms.fields.get("output_schema") is None:
        returned = signature.return_annotation
        result = output_schema(returned, definition, tool, docstring.returns)
        told |= {} if result is None else {"output_schema": result}
    return told


def _of_class(cls: type, terms: Terms, tool: str) -> dict[str, Json]:
    if not any(hasattr(cls, mark) for mark in _HAS_FIELDS):
        raise SignatureUnsupported(
            f"{tool}: a class is declared if it is a model of Pydantic, a dataclass or a typed"
            " dictionary; of another one, declare its methods",
            facts={"tool": tool},
        )
    for name in terms.injected:
        raise SignatureUnsupported(
            f"{tool}: injected names `{name}`, and a class has no parameters",
            facts={"tool": tool, "parameter": name},
        )
    arguments = _root(_schema_of_class(cls, tool))
    if arguments.get("type", "object") != "object":
        raise SignatureUnsupported(
            f"{tool}: its values are of JSON type {arguments['type']}, and the arguments of a tool"
            " are an object",
            facts={"tool": tool},
        )
    docstring = read_docstring(cast("str | None", arguments.pop("description", None)))
    properties = cast("dict[str, dict[str, Json]]", arguments.get("properties", {}))
    _describe(properties.items(), docstring.parameters)
    return {"description": docstring.description, "input_schema": arguments}


def _schema_of_class(cls: type, tool: str) -> dict[str, Json]:
    try:
        return schema_of(cls, "validation")
    except NoJsonForm as error:
        for name, annotation in _fields(cls):
            check_parameter(Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation), tool)
        raise SignatureUnsupported(
            f"{tool}: {cls.__qualname__} has no JSON form: {error}",
            facts={"tool": tool},
        ) from error


def _fields(cls: type) -> list[tuple[str, Any]]:
    """Return the annotated fields of a class; none if they cannot be evaluated."""
    try:
        hints = get_type_hints(cls, include_extras=True)
    except (AttributeError, NameError, TypeError):
        return []
    return [
        (name, hint)
        for name, hint in hints.items()
        if name.isidentifier() and ClassVar not in (hint, get_origin(hint))
    ]


def _root(schema: dict[str, Json]) -> dict[str, Json]:
    """Return a schema whose root is no reference: one of a class that holds itself is one."""
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return schema
    definitions = cast("dict[str, dict[str, Json]]", schema["$defs"])
    return {**definitions[reference.rpartition("/")[2]], "$defs": schema["$defs"]}


def _describe(properties: Iterable[tuple[str, dict[str, Json]]], told: Mapping[str, str]) -> None:
    """Add what a docstring tells of the parameters to those that say nothing of themselves."""
    for name, schema in properties:
        if name in told:
            schema.setdefault("description", told[name])


def _strict(document: Mapping[str, object], tool: str) -> dict[str, Json]:
    """Return the document as strict JSON: an author's own additions may be none."""
    try:
        text = json.dumps(document, allow_nan=False)
        plain: dict[str, Json] = json.loads(text)
        if any(each.search(text) for each in _DOUBTFUL):
            # The walk names every fault, and takes ten times as long.
            return cast("dict[str, Json]", check_json(plain))
        return plain
    except MalformedJson as error:
        raise _not_json(tool, error.pointer, error.detail) from None
    except (TypeError, ValueError) as error:
        raise _not_json(tool, _place_of_fault(document), str(error)) from None


def _place_of_fault(value: object) -> str:
    """Return the pointer of the first part of a value that is no JSON by itself."""
    if isinstance(value, Mapping):
        parts = cast("Mapping[object, object]", value).items()
    elif isinstance(value, list | tuple):
        parts = enumerate(cast("list[object]", value))
    else:
        return ""
    for key, part in parts:
        try:
            json.dumps(part, allow_nan=False)
        except (TypeError, ValueError):
            return pointer_join(str(key)) + _place_of_fault(part)
    return ""


def _not_json(tool: str, pointer: str, detail: str) -> SignatureUnsupported:
    tokens = pointer_split(pointer)
    facts: dict[str, Json] = {"tool": tool}
    place = pointer
    if tokens[:2] == _PROPERTIES and len(tokens) > len(_PROPERTIES):
        facts["parameter"] = tokens[2]
        place = place_of(tokens[2])
    return SignatureUnsupported(f"{tool}: {place}: {detail}", facts=facts)
