"""How many there may be of something, as pairs of atoms say it."""

from dataclasses import dataclass

from tallystick.compatibility.algebra.node import Node, Not, Size


@dataclass(slots=True)
class Bounds:
    """A least and a most, both inclusive; the most may be open."""

    least: int = 0
    most: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no number is within the bounds."""
        return self.most is not None and self.most < self.least

    def admit(self, count: int) -> bool:
        """Tell whether a number is not too great."""
        return self.most is None or count <= self.most

    def at_least(self, count: int) -> None:
        """Raise the least."""
        self.least = max(self.least, count)

    def at_most(self, count: int) -> None:
        """Lower the most."""
        self.most = count if self.most is None else min(self.most, count)

    def take(self, node: Node, minimum: type[Size], maximum: type[Size]) -> bool:
        """Take what an atom, plain or negated, says; tell whether it is one of these two kinds."""
        is_negated = isinstance(node, Not)
        atom = node.part if isinstance(node, Not) else node
        if not isinstance(atom, minimum | maximum):
            return False
        if isinstance(atom, minimum) is not is_negated:
            self.at_least(atom.count + is_negated)
        else:
            self.at_most(atom.count - is_negated)
        return True
