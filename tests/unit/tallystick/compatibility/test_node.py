"""The algebra: equal nodes are one object, whichever way they are made."""

from fractions import Fraction

from tallystick.compatibility.algebra.node import (
    Algebra,
    AtLeast,
    AtMost,
    Member,
    MinItems,
    MinLength,
    Required,
    Types,
    Unique,
    Values,
)
from tallystick.compatibility.algebra.value import Kind


def required(algebra: Algebra, *names: str) -> list[Required]:
    return [algebra.make(Required, name) for name in names]


def test_equal_nodes_are_one():
    algebra = Algebra()

    assert algebra.make(MinItems, 2) is algebra.make(MinItems, 2)
    assert algebra.make(MinItems, 2) is not algebra.make(MinItems, 3)
    assert algebra.make(MinItems, 2) is not algebra.make(MinLength, 2)
    assert algebra.make(AtLeast, Fraction(1), True) is not algebra.make(
        AtLeast, Fraction(1), is_exclusive=False
    )


def test_the_order_of_parts_is_no_matter():
    algebra = Algebra()
    a, b, c = required(algebra, "a", "b", "c")

    assert algebra.all_of([a, b, c]) is algebra.all_of([c, algebra.all_of([b, a]), b])
    assert algebra.any_of([a, b, c]) is algebra.any_of([c, algebra.any_of([b, a]), b])


def test_everything_and_nothing_are_neutral_or_absorb():
    algebra = Algebra()
    (a,) = required(algebra, "a")
    everything, nothing = algebra.everything, algebra.nothing

    assert algebra.all_of([]) is everything
    assert algebra.any_of([]) is nothing
    assert algebra.one_of([]) is nothing
    assert algebra.all_of([a, everything]) is algebra.any_of([a, nothing]) is a
    assert algebra.one_of([nothing, a]) is a
    assert algebra.all_of([a, nothing]) is nothing
    assert algebra.any_of([a, everything]) is everything


def test_the_complement_of_a_complement_is_the_node():
    algebra = Algebra()
    (a,) = required(algebra, "a")

    assert algebra.negate(algebra.negate(a)) is a
    assert algebra.negate(algebra.everything) is algebra.nothing
    assert algebra.negate(algebra.nothing) is algebra.everything


def test_listed_values_of_a_union_are_one_list():
    algebra = Algebra()
    one, two = (algebra.make(Values, frozenset({number})) for number in (1, 2))

    assert algebra.any_of([one, two]) is algebra.make(Values, frozenset({1, 2}))


def test_a_part_that_is_there_twice_is_never_the_only_one():
    algebra = Algebra()
    (a,) = required(algebra, "a")

    assert algebra.one_of([a, a]) is not a


def test_an_atom_that_says_nothing_of_its_part_is_everything():
    algebra = Algebra()
    text = algebra.make(Types, frozenset({Kind.STRING}))

    assert algebra.carry(algebra.everything, Member, "a", algebra.everything) is algebra.everything
    assert algebra.carry(text, Member, "a", text) is algebra.make(Member, "a", text)


def test_a_reference_is_read_when_it_is_asked_for():
    algebra = Algebra()
    asked: list[str] = []

    def target() -> AtMost:
        asked.append("now")
        return algebra.make(AtMost, Fraction(0), is_exclusive=False)

    reference = algebra.refer(0, "/$defs/a", target)

    assert algebra.refer(0, "/$defs/a", target) is reference
    assert algebra.refer(1, "/$defs/a", target) is not reference
    assert asked == []
    assert algebra.target(reference) is algebra.target(reference)
    assert asked == ["now"]


def test_two_algebras_share_nothing():
    assert Algebra().make(Unique) is not Algebra().make(Unique)
