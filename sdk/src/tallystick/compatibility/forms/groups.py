"""Which schemas describe one location in a value together, and which of them are rivals there."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from tallystick.canonical import Json, pointer_split
from tallystick.compatibility.forms.alternatives import are_exclusive
from tallystick.subschema import KEYWORDS, Position, Scope, Subschemas

RIVALS_MAX: Final = 8

# The pointers of the schemas that may describe the same location as another one.
Rivals: TypeAlias = frozenset[str]
# For the pointers of schemas that have rivals: which, or None if they are too many.
Family: TypeAlias = dict[str, Rivals | None]
# A choice of which a value takes one way at most, and the number of a way.
_Way: TypeAlias = tuple[str, int]

_STEPS: Final = frozenset({"properties", "prefixItems", "items"})
DEFINITIONS: Final = frozenset({"$defs", "definitions"})
_STRUCTURE: Final = frozenset({Scope.MEMBER, Scope.ITEM})
# What applies to the same value and declares nothing of it, and what 2020-12 passes over.
_ELSEWHERE: Final = frozenset({"not", "dependencies"})
_BOUNDLESS: Final = 2**53


@dataclass(frozen=True, slots=True)
class _Member:
    """A schema of a group.

    Args:
        position: The schema.
        ways: The choices that were made on every path to it.
        is_sure: Whether it applies whatever the value is.
        stays_open: Whether it is there to tell rather than to constrain: in an `if`, or as an
            alternative to `true`.
    """

    position: Position
    ways: frozenset[_Way]
    is_sure: bool
    stays_open: bool

    @property
    def is_explicit(self) -> bool:
        """Whether the schema says itself what becomes of the properties that it does not name."""
        keywords = self.position.keywords
        return "additionalProperties" in keywords or "unevaluatedProperties" in keywords

    def merged(self, other: "_Member") -> "_Member":
        """Return what is true of the schema on this path to it as well as on another."""
        return _Member(
            self.position,
            self.ways & other.ways,
            is_sure=self.is_sure or other.is_sure,
            stays_open=self.stays_open and other.stays_open,
        )

    def excludes(self, other: "_Member") -> bool:
        """Return whether no value has both schemas apply to it."""
        return any(a == b and m != n for a, m in self.ways for b, n in other.ways)


@dataclass(frozen=True, slots=True, eq=False)
class _Describer:
    """A schema for properties or items, with the member of a group that holds it."""

    member: _Member
    keyword: str
    token: str
    position: Position

    @property
    def is_step(self) -> bool:
        """Whether the schema describes what the group declares, rather than all the rest."""
        return self.keyword in _STEPS

    @property
    def slot(self) -> tuple[str, ...]:
        """What two schemas share that may describe the same property or item."""
        if KEYWORDS[self.keyword][1] is Scope.ITEM:
            return ("an item",)
        return ("property", self.token) if self.keyword == "properties" else ("some property",)

    @property
    def indices(self) -> tuple[int, int]:
        """The first index of the items that are described, and the first one beyond."""
        prefix = self.member.position.keywords.get("prefixItems")
        match self.keyword:
            case "prefixItems":
                return int(self.token), int(self.token) + 1
            case "items" if isinstance(prefix, list):
                return len(prefix), _BOUNDLESS
            case _:
                return 0, _BOUNDLESS

    def may_meet(self, other: "_Describer") -> bool:
        """Return whether another schema of the group may describe the same property or item."""
        if self.position is other.position or self.member.excludes(other.member):
            return False
        match other.keyword:
            case "patternProperties" | "contains":
                return True
            case "additionalProperties":
                declared = other.member.position.keywords.get("properties")
                return not (isinstance(declared, dict) and self.token in declared)
            case "items" | "prefixItems":
                return max(self.indices[0], other.indices[0]) < min(
                    self.indices[1], other.indices[1]
                )
            case _:
                return self.member.position is not other.member.position


class Groups:
    """The groups of one schema.

    A group is told by its root, and holds what that applies in place.
    """

    def __init__(self, positions: Subschemas) -> None:
        self._positions = positions
        self._members: dict[str, list[_Member]] = {}
        self._held: dict[str, list[tuple[str, str, Position]]] = {}
        self._has_closable: dict[str, bool] = {}

    def target(self, position: Position) -> Position | None:
        """Return what the `$ref` of a schema means, if it has one that leads somewhere."""
        reference = position.keywords.get("$ref")
        return self._positions.target(position, reference) if isinstance(reference, str) else None

    def alias(self, position: Position) -> Position | None:
        """Return the target of a schema that is no more than a reference."""
        is_more = position.keywords.keys() & KEYWORDS.keys() - DEFINITIONS
        return None if is_more else self.target(position)

    def is_closable(self, position: Position, rivals: Rivals = frozenset()) -> bool:
        """Return whether a group declares properties, and does not say itself what of others."""
        members = self._of(position)
        everyone = [*members, *self._of_all(rivals)]
        return (
            any("properties" in each.position.keywords for each in members)
            and not any(each.is_sure and each.is_explicit for each in members)
            and not any("patternProperties" in each.position.keywords for each in everyone)
        )

    def declares_alone(self, position: Position) -> bool:
        """Return whether the root of a group is all of it that says which properties there are."""
        return not any(
            "properties" in each.position.keywords or each.is_explicit
            for each in self._of(position)
            if each.position is not position
        )

    def has_closable(self, position: Position) -> bool:
        """Return whether a group is to be closed, or one inside it."""
        return self.is_closable(position) or self.has_closable_inside(position)

    def has_closable_inside(self, position: Position) -> bool:
        """Return whether a group is to be closed that describes properties or items of this one."""
        seen: set[str] = set()
        pending = [position]
        while pending:
            inside = pending.pop()
            if inside.pointer in seen:
                continue
            seen.add(inside.pointer)
            known = self._has_closable.get(inside.pointer)
            steps = [] if known is False else self._steps(inside)
            if known or any(self.is_closable(each) for each in steps):
                self._has_closable[position.pointer] = True
                return True
            pending.extend(steps)
        self._has_closable.update(dict.fromkeys(seen, False))
        return False

    def family(self, position: Position, rivals: Rivals) -> Family:
        """Return the rivals of the schemas by which a group describes properties and items.

        Args:
            position: The root of the group.
            rivals: Its own rivals.
        """
        own = [each for member in self._of(position) for each in self._describers(member)]
        foreign = (each for member in self._of_all(rivals) for each in self._describers(member))
        by_slot: dict[tuple[str, ...], list[_Describer]] = {}
        for each in (*own, *foreign):
            if not self._is_blank(each.position):
                by_slot.setdefault(each.slot, []).append(each)
        family: Family = {}
        for each in own:
            near = by_slot.get(each.slot, [])
            if each.keyword == "properties":
                near = near + by_slot.get(("some property",), [])
            met = frozenset(other.position.pointer for other in near if each.may_meet(other))
            if each.is_step and met:
                family[each.position.pointer] = met if len(met) <= RIVALS_MAX else None
        return family

    def narrowed(self, family: Family, position: Position) -> Family:
        """Return what of a family concerns the group of this schema."""
        if not family:
            return family
        steps = {each.pointer for each in self._steps(position)}
        return {pointer: rivals for pointer, rivals in family.items() if pointer in steps}

    def _of(self, position: Position) -> list[_Member]:
        if position.pointer not in self._members:
            self._members[position.pointer] = self._gathered(position)
        return self._members[position.pointer]

    def _of_all(self, rivals: Rivals) -> Iterator[_Member]:
        for pointer in sorted(rivals):
            yield from self._of(self._positions.at(pointer))

    def _gathered(self, position: Position) -> list[_Member]:
        found: dict[str, _Member] = {}
        pending = [_Member(position, frozenset(), is_sure=True, stays_open=False)]
        while pending:
            member = pending.pop()
            known = found.get(member.position.pointer)
            if known is not None:
                member = known.merged(member)
                if member == known:
                    continue
            found[member.position.pointer] = member
            pending.extend(self._in_place(member))
        return list(found.values())

    def _in_place(self, member: _Member) -> Iterator[_Member]:
        position, ways = member.position, member.ways
        target = self.target(position)
        if target is not None:
            yield _Member(target, ways, member.is_sure, member.stays_open)
        for keyword, value in position.keywords.items():
            if not applies_in_place(position, keyword):
                continue
            children = list(self._positions.held_by(position, keyword))
            is_choice = keyword in {"then", "else", "oneOf"} or (
                keyword == "anyOf" and are_exclusive(self._positions, children)
            )
            stays_open = member.stays_open or tells_only(keyword, value)
            choice = position.pointer + ("/if" if keyword in {"then", "else"} else "/" + keyword)
            for number, child in enumerate(children):
                way = choice, number + (keyword == "else")
                yield _Member(
                    child,
                    ways | {way} if is_choice else ways,
                    is_sure=member.is_sure and keyword == "allOf",
                    stays_open=stays_open,
                )

    def _describers(self, member: _Member) -> Iterator[_Describer]:
        position = member.position
        if position.pointer not in self._held:
            self._held[position.pointer] = [
                (keyword, pointer_split(child.pointer)[-1], child)
                for keyword in position.keywords
                if keyword in KEYWORDS and KEYWORDS[keyword][1] in _STRUCTURE
                for child in self._positions.held_by(position, keyword)
            ]
        for keyword, token, child in self._held[position.pointer]:
            yield _Describer(member, keyword, token, child)

    def _steps(self, position: Position) -> list[Position]:
        return [
            each.position
            for member in self._of(position)
            if not member.stays_open
            for each in self._describers(member)
            if each.is_step
        ]

    def _is_blank(self, position: Position) -> bool:
        return not any(
            keyword in KEYWORDS and KEYWORDS[keyword][1] in _STRUCTURE
            for member in self._of(position)
            for keyword in member.position.keywords
        )


def applies_in_place(position: Position, keyword: str) -> bool:
    """Return whether a keyword applies its schemas to the value that a schema describes itself."""
    if keyword in {"then", "else"}:
        return "if" in position.keywords
    return keyword in KEYWORDS and KEYWORDS[keyword][1] is Scope.SAME and keyword not in _ELSEWHERE


def tells_only(keyword: str, value: Json) -> bool:
    """Return whether a keyword's schemas tell what is declared, and refuse nothing."""
    return keyword == "if" or (
        keyword == "anyOf" and isinstance(value, list) and any(each is True for each in value)
    )
