"""How a value breaks a schema, in sentences that quote the schema and never the value."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from tallystick.canonical import Json, pointer_join
from tallystick.subschema import KEYWORDS

if TYPE_CHECKING:
    import jsonschema_rs

VIOLATIONS_MAX: Final = 20
_MESSAGE_CHARS_MAX: Final = 300
# The keywords whose operand is data, not a schema.
_PLAIN: Final = frozenset(
    {
        "const",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "pattern",
        "type",
    }
)


@dataclass(frozen=True, slots=True)
class Violation:
    """One way in which a value breaks a schema.

    Args:
        pointer: Where in the value, a JSON Pointer.
        keyword: The keyword that says so.
        message: One sentence, which quotes the schema and never the value.
        operand: What the schema says by the keyword, where that is a plain bound or choice.
    """

    pointer: str
    keyword: str
    message: str
    operand: Json = None


def explain(errors: "Iterable[jsonschema_rs.ValidationError]") -> tuple[Violation, ...]:
    """Return what the engine's errors come to, `VIOLATIONS_MAX` at most."""
    pending = list(errors)[::-1]
    found: list[Violation] = []
    while pending and len(found) < VIOLATIONS_MAX:
        error = pending.pop()
        meant = _fitting_branch(error)
        pending.extend(reversed(meant))
        if not meant:
            found.extend(_violations(error))
    return tuple(found[:VIOLATIONS_MAX])


def _fitting_branch(
    error: "jsonschema_rs.ValidationError",
) -> list["jsonschema_rs.ValidationError"]:
    """Return the errors of the one alternative that was meant, if the value's shape tells.

    "Expected one of these" helps nobody when all others are for another type or another constant.
    """
    from jsonschema_rs import ValidationErrorKind

    match error.kind:
        case ValidationErrorKind.AnyOf(context) | ValidationErrorKind.OneOfNotValid(context):
            fitting = [
                branch
                for branch in context
                if not any(
                    each.kind.name == "const"
                    or (each.kind.name == "type" and each.instance_path == error.instance_path)
                    for each in branch
                )
            ]
            return fitting[0] if len(fitting) == 1 else []
        case _:
            return []


def _violations(error: "jsonschema_rs.ValidationError") -> list[Violation]:
    from jsonschema_rs import ValidationErrorKind as Kind

    keyword, place = error.kind.name, pointer_join(*error.instance_path)
    match error.kind:
        case Kind.AdditionalProperties(names) | Kind.UnevaluatedProperties(names):
            message = "this property is not declared"
            return [Violation(place + pointer_join(name), keyword, message) for name in names]
        case Kind.Required(name):
            return [Violation(place + pointer_join(name), keyword, "this property is required")]
        case Kind.FalseSchema():
            last = str(error.schema_path[-1]) if error.schema_path else ""
            keyword = last if last in KEYWORDS else keyword
            return [Violation(place, keyword, "nothing is allowed here")]
        case Kind.Contains():
            return [Violation(place, keyword, "too few or too many items match `contains`")]
        case _:
            operand = cast("Any", error.kind).value if keyword in _PLAIN else None
            return [Violation(place, keyword, error.message[:_MESSAGE_CHARS_MAX], operand)]
