"""Which values comparisons with constants leave, as far as that is plain."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, cast

from tallystick.canonical import Json
from tallystick.policy.operators import LAWS, ORDERED, PATTERNED, Kind, Operator, kind_of
from tallystick.policy.terms import Condition, Operand, Source

NEGATED: Final[Mapping[Operator, Operator]] = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.GT: Operator.LTE,
    Operator.GTE: Operator.LT,
    Operator.LT: Operator.GTE,
    Operator.LTE: Operator.GT,
    Operator.IN: Operator.NOT_IN,
    Operator.NOT_IN: Operator.IN,
    Operator.MATCHES: Operator.NOT_MATCHES,
    Operator.NOT_MATCHES: Operator.MATCHES,
}
_FLIPPED: Final[Mapping[Operator, Operator]] = {
    Operator.EQ: Operator.EQ,
    Operator.NE: Operator.NE,
    Operator.GT: Operator.LT,
    Operator.GTE: Operator.LTE,
    Operator.LT: Operator.GT,
    Operator.LTE: Operator.GTE,
}
_TEXTS: Final = PATTERNED | {Operator.STARTS_WITH, Operator.ENDS_WITH}
_ANYTHING: Final = frozenset(Kind) - {Kind.NULL, Kind.OTHER}
_MADE_KINDS: Final[Mapping[str, Kind]] = {
    **dict.fromkeys(("lower", "upper", "trim", "text"), Kind.STRING),
    **dict.fromkeys(("number", "length", "sum", "min", "max"), Kind.NUMBER),
}


class Bound(NamedTuple):
    """A comparison of an operand with a constant, the operand on the left.

    Args:
        operator: How they compare.
        constant: The constant.
    """

    operator: Operator
    constant: Json


def bound_of(condition: Condition) -> tuple[Operand, Bound] | None:
    """Return what a condition compares with a constant that it fits; None if there is none."""
    if fits_nothing(condition):
        return None
    left, right = condition.left, condition.right
    if left.source is Source.CONST:
        flipped = _FLIPPED.get(condition.operator)
        if flipped is None or right.source is Source.CONST:
            return None
        return right, Bound(flipped, left.value)
    if right.source is not Source.CONST or right.value is None:
        return None
    return left, Bound(condition.operator, right.value)


def negated(bound: Bound) -> Bound | None:
    """Return the opposite of a bound, of values that it fits; None if no operator says so."""
    operator = NEGATED.get(bound.operator)
    return None if operator is None else Bound(operator, bound.constant)


def can_all_hold(bounds: Iterable[Bound]) -> bool:
    """Return whether a value may be within all bounds; False only if there surely is none."""
    bounds = tuple(bounds)
    kinds = _ANYTHING
    for bound in bounds:
        kinds &= _kinds_within(bound)
    if not kinds or any(
        bound.operator is Operator.MATCHES and negated(bound) in bounds for bound in bounds
    ):
        return False
    candidates = _candidates(bounds)
    if candidates is None and kinds == frozenset({Kind.BOOLEAN}):
        candidates = [True, False]
    if candidates is not None:
        return any(_is_within(each, bounds) for each in candidates)
    return kinds != frozenset({Kind.NUMBER}) or _is_a_range(bounds)


def fits_nothing(condition: Condition) -> bool:
    """Return whether an operator can compare no values of the types that its operands have."""
    left, right = _kinds(condition.left), _kinds(condition.right)
    match condition.operator:
        case Operator.EXISTS | Operator.NOT_EXISTS:
            return False
        case Operator.EQ | Operator.NE:
            return not left & right
        case Operator.IN | Operator.NOT_IN:
            return Kind.LIST not in right
        case Operator.CONTAINS | Operator.NOT_CONTAINS:
            return Kind.LIST not in left and Kind.STRING not in left & right
        case operator:
            return (Kind.NUMBER if operator in ORDERED else Kind.STRING) not in left & right


def _kinds(operand: Operand) -> frozenset[Kind]:
    """Return of which kinds the value of an operand can be."""
    if operand.source is Source.CONST:
        return frozenset({kind_of(operand.value)})
    if operand.transform:
        made = _MADE_KINDS.get(operand.transform[-1])
        return _ANYTHING if made is None else frozenset({made})
    return frozenset({Kind.LIST}) if operand.path and operand.path.has_each else _ANYTHING


def _kinds_within(bound: Bound) -> frozenset[Kind]:
    """Return of which kinds a value is that is within a bound."""
    operator, constant = bound
    if operator in ORDERED:
        return frozenset({Kind.NUMBER})
    if operator in _TEXTS:
        return frozenset({Kind.STRING})
    if operator in (Operator.EQ, Operator.NE):
        return frozenset({kind_of(constant)})
    if operator in (Operator.IN, Operator.NOT_IN) and isinstance(constant, list) and constant:
        return frozenset(map(kind_of, constant))
    return _ANYTHING


def _candidates(bounds: tuple[Bound, ...]) -> list[Json] | None:
    """Return the values of which one it is, if a bound lists them."""
    for operator, constant in bounds:
        if operator is Operator.EQ:
            return [constant]
        if operator is Operator.IN and isinstance(constant, list):
            return constant
    return None


def _is_within(value: Json, bounds: tuple[Bound, ...]) -> bool:
    return all(
        LAWS[operator].fits(value, constant) and LAWS[operator].holds(value, constant)
        for operator, constant in bounds
    )


def _is_a_range(bounds: tuple[Bound, ...]) -> bool:
    """Return whether there are numbers within bounds, none of which lists them."""
    least, most = float("-inf"), float("inf")
    for operator, constant in bounds:
        if operator in (Operator.GT, Operator.GTE):
            least = max(least, cast("float", constant))
        elif operator in (Operator.LT, Operator.LTE):
            most = min(most, cast("float", constant))
    return least < most or (least == most and _is_within(least, bounds))
