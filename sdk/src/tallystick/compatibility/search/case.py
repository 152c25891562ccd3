"""What must hold of one value, as far as it is known: a branch of the tableau."""

from dataclasses import dataclass

from tallystick.compatibility.algebra.node import (
    KINDS,
    All,
    Member,
    Node,
    Not,
    Nothing,
    Opaque,
    Other,
    Required,
    Types,
    Values,
)
from tallystick.compatibility.algebra.value import ALL_KINDS, Key, Kind, kind_of_key
from tallystick.compatibility.search.outcome import Closed


@dataclass(frozen=True, slots=True)
class Choice:
    """Nodes of which one must hold.

    Args:
        nodes: The nodes.
        is_goal: Whether they are the ways to break something, rather than the ways to obey it.
    """

    nodes: tuple[Node, ...]
    is_goal: bool

    @property
    def is_telling(self) -> bool:
        """Whether each of the nodes says much about the value."""
        return not self.is_goal and all(
            isinstance(node, All | Types | Values) for node in self.nodes
        )


class Case:
    """What must hold of one value.

    Attributes:
        held: Every node that holds.
        kinds: The types that are left.
        keys: The only values that are left, if they can be listed.
        choices: What is not chosen yet.
        latent: What would come to so many choices that they are not written out before they matter.
        named: For properties that are spoken of by name: the nodes that their values must be in.
        present: The properties that must be there, if the value is an object.
        absent: Those that must not.
        others: What holds of all properties that are not named in them.
    """

    __slots__ = (
        "absent",
        "choices",
        "held",
        "keys",
        "kinds",
        "latent",
        "named",
        "others",
        "present",
    )

    def __init__(self) -> None:
        self.held: dict[Node, None] = {}
        self.kinds = ALL_KINDS
        self.keys: frozenset[Key] | None = None
        self.choices: list[Choice] = []
        self.latent: list[Node] = []
        self.named: dict[str, frozenset[Node]] = {}
        self.present = set[str]()
        self.absent = set[str]()
        self.others: tuple[Other, ...] = ()

    def copy(self) -> "Case":
        """Return a case that can be added to without changing this one."""
        case = Case()
        case.held = dict(self.held)
        case.kinds, case.keys = self.kinds, self.keys
        case.choices, case.latent = list(self.choices), list(self.latent)
        case.named, case.others = dict(self.named), self.others
        case.present, case.absent = set(self.present), set(self.absent)
        return case

    def hold(self, node: Node) -> Closed | None:
        """Take what a node says by itself; return why nothing is left, if that is so."""
        self.held[node] = None
        match node:
            case Types(kinds):
                self.kinds &= kinds
            case Not(Types(kinds)):
                self.kinds -= kinds
            case Values(keys):
                self.keys = keys if self.keys is None else self.keys & keys
                self.kinds &= {kind_of_key(key) for key in self.keys}
            case Not(Values(keys)):
                self.keys = None if self.keys is None else self.keys - keys
            case Nothing():
                self.kinds -= ALL_KINDS
            case _:
                self._speak(node)
        if not self.kinds:
            return Closed("type", "no type is left")
        return Closed("enum", "no listed value is left") if self.keys == frozenset() else None

    def name(self, name: str, part: Node) -> None:
        """Take that a property's value, if it is there, is in a node."""
        self.named[name] = self.named.get(name, frozenset[Node]()) | {part}

    def is_only(self, *kinds: Kind) -> bool:
        """Tell whether these types alone are left."""
        return self.kinds <= set(kinds)

    def value_nodes(self, name: str) -> frozenset[Node]:
        """Return what a property's value must be in, as far as it is plain to see."""
        nodes = self.named.get(name, frozenset[Node]())
        rules = [each.node for each in self.others if name not in each.names and not each.patterns]
        return nodes.union(rules) if rules else nodes

    def atoms(self, kind: Kind) -> list[Node]:
        """Return what holds of values of a type: its atoms and excluded values, plain and not."""
        return [
            node
            for node in self.held
            if (part := node.part if isinstance(node, Not) else node)
            and (KINDS.get(type(part)) is kind or isinstance(part, Values))
        ]

    def opaque(self) -> Opaque | None:
        """Return something that is not understood, if that is so."""
        parts = (node.part if isinstance(node, Not) else node for node in self.held)
        return next((part for part in parts if isinstance(part, Opaque)), None)

    def _speak(self, node: Node) -> None:
        """Take what an atom, plain or negated, says of properties."""
        if isinstance(node, Not) and type(node.part) in KINDS:
            self.kinds &= {KINDS[type(node.part)]}  # no value of another type breaks the keyword
        match node:
            case Member(name, part):
                self.name(name, part)
            case Required(name) | Not(Member(name)):
                self.present.add(name)
            case Not(Required(name)):
                self.absent.add(name)
            case Other():
                self.others += (node,)
            case _:
                pass
