"""JSON Schemas of Python types: Pydantic's, with nothing invented and nothing left out in silence.

Titles stand only where an author stated them, and what has no JSON form is refused, where Pydantic
warns and goes on.
"""

import inspect
import re
from collections.abc import Set as AbstractSet
from typing import Any, Final, cast

from pydantic import ConfigDict, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import SchemaError, core_schema

from tallystick.canonical import Json
from tallystick.signatures.decimals import decimal_number, decimal_text
from tallystick.subschema import SENSITIVE

# What Pydantic, or the author's own type, raises when no schema can be made; Pydantic's own errors
# are among them.
_FAULTS: Final = (
    SchemaError,
    AttributeError,
    LookupError,
    NameError,
    RuntimeError,
    TypeError,
    ValueError,
)

_INVENTED: Final = "\0"
_METHODS: Final[dict[Any, str]] = {}
# Keywords that hold schemas by names of the author, and keywords that hold none.
_MAPS: Final = frozenset({"$defs", "patternProperties", "properties"})
_VALUES: Final = frozenset({"const", "default", "enum", "examples"})
_JSON_SCALARS: Final = frozenset({str, int, float, bool, type(None)})


class NoJsonForm(Exception):
    """No JSON Schema can be made; the reason in one line."""


def schema_of(annotation: object, mode: JsonSchemaMode) -> dict[str, Json]:
    """Return the JSON Schema of what an annotation says, of a function the one of its arguments.

    Args:
        annotation: What a `pydantic.TypeAdapter` takes.
        mode: Whether of what is read, or of what is written.

    Raises:
        NoJsonForm: There is none.
    """
    try:
        adapter: TypeAdapter[object] = TypeAdapter(cast("Any", annotation))
        return adapter.json_schema(mode=mode, schema_generator=_Generator)
    except _FAULTS as error:
        # The first sentence is the reason; what follows is advice for models of Pydantic's own.
        reason = re.split(r"\.?\n|\. ", str(error) or type(error).__name__)[0]
        raise NoJsonForm(reason) from error


class _Generator(GenerateJsonSchema):
    """Pydantic's generator with the choices of this library."""

    def build_schema_type_to_method(self) -> dict[Any, Any]:
        """Return the methods by the types that they are for, which are looked up once only."""
        if not _METHODS:
            found = super().build_schema_type_to_method()
            _METHODS.update({kind: method.__name__ for kind, method in found.items()})
        return {kind: getattr(self, name) for kind, name in _METHODS.items()}

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:
        """Leave the order as it is: whoever writes a schema down has an order of his own."""
        del parent_key
        return value

    def emit_warning(self, kind: str, detail: str) -> None:
        """Refuse what Pydantic would leave out."""
        del kind
        raise PydanticInvalidForJsonSchema(detail)

    def is_subclass_schema(self, schema: core_schema.IsSubclassSchema) -> JsonSchemaValue:
        """Refuse a class as a value, of which Pydantic says that it may be anything."""
        raise PydanticInvalidForJsonSchema(f"a subclass of {schema['cls'].__name__} is no JSON")

    def encode_default(self, dft: object) -> object:
        """Return a default as JSON; a set in the same order every time."""
        if type(dft) in _JSON_SCALARS:
            return dft
        encoded = super().encode_default(dft)
        return sorted(encoded, key=repr) if isinstance(dft, AbstractSet) else encoded

    def field_title_should_be_set(self, schema: object) -> bool:
        """Give no field a title made of its name."""
        del schema
        return False

    def get_title_from_name(self, name: str) -> str:
        """Return a mark, by which an invented title is known and taken away."""
        del name
        return _INVENTED

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Give a model no title made of its name."""
        return _without_invented_title(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """Give a dataclass no title made of its name, and its own docstring in every Pydantic."""
        cls = schema["cls"]
        found = _without_invented_title(super().dataclass_schema(schema), cls)
        if cls.__doc__ and not cls.__doc__.startswith(f"{cls.__name__}("):  # as dataclasses do
            found.setdefault("description", inspect.cleandoc(cls.__doc__))
        return found

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        """Give a typed dictionary no title made of its name."""
        return _without_invented_title(super().typed_dict_schema(schema), schema.get("cls"))

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        """Note the names of enumerations."""
        self._enumerations.add(schema["cls"].__name__)
        return super().enum_schema(schema)

    def generate(
        self, schema: core_schema.CoreSchema, mode: JsonSchemaMode = "validation"
    ) -> JsonSchemaValue:
        """Give enumerations no titles made of their names, which Pydantic adds last of all.

        Secrets of Pydantic's are marked as the ledger asks for it.
        """
        self._enumerations: set[str] = set()
        found = super().generate(schema, mode)
        _mark_secrets(found)
        for each in (found, *found.get("$defs", {}).values()):
            if "enum" in each and each.get("title") in self._enumerations:
                del each["title"]
        return found

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        """Say what a decimal may be in patterns of linear time, the same by every Pydantic."""
        is_result = self.mode == "serialization"
        text = decimal_text(cast("dict[str, Any]", schema), is_result=is_result)
        if is_result:
            return text
        return {"anyOf": [decimal_number(cast("dict[str, Any]", schema)), text]}

    def arguments_schema(self, schema: core_schema.ArgumentsSchema) -> JsonSchemaValue:
        """Say of `**kwargs: Unpack[...]` what it means: the fields are arguments of their own."""
        arguments = super().arguments_schema(schema)
        # Pydantic 2.11 gives every argument a title, even in place of a stated one.
        for each in (*arguments.get("properties", {}).values(), *arguments.get("prefixItems", ())):
            if each.get("title") == _INVENTED:
                del each["title"]
        if schema.get("var_kwargs_mode") == "unpacked-typed-dict":
            fields = self.resolve_ref_schema(arguments["additionalProperties"])
            required = [*arguments.get("required", ()), *fields.get("required", ())]
            arguments["properties"] |= fields["properties"]
            arguments |= {"required": required} if required else {}
            arguments["additionalProperties"] = fields.get("additionalProperties", False)
        return arguments


def _mark_secrets(schema: JsonSchemaValue) -> None:
    """Mark what Pydantic keeps out of sight (`SecretStr`), so that no ledger records it either."""
    pending: list[object] = [schema]
    while pending:
        found = pending.pop()
        if isinstance(found, list):
            pending.extend(cast("list[object]", found))
        elif isinstance(found, dict):
            members = cast("dict[str, Any]", found)
            if members.get("writeOnly") is True and members.get("format") == "password":
                members[SENSITIVE] = True
            for keyword, each in members.items():
                if keyword in _MAPS:
                    pending.extend(each.values())
                elif keyword not in _VALUES:
                    pending.append(each)


def _without_invented_title(schema: JsonSchemaValue, cls: type | None) -> JsonSchemaValue:
    config = getattr(cls, "model_config", None) or getattr(cls, "__pydantic_config__", None)
    is_stated = config is not None and cast("ConfigDict", config).get("title") is not None
    if cls is None or is_stated or schema.get("title") != cls.__name__:
        return schema
    return {keyword: value for keyword, value in schema.items() if keyword != "title"}
