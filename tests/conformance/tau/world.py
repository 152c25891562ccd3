"""The store behind the tools of one task, as far as its gold calls tell.

The corpus has the calls and not the stores. So the world of a task is what its gold calls entail:
the customer and all that they name, which is the customer's, in the state in which each of them is
right. `retail`, `airline` and `telecom` say what that is. Nothing else is there but a stranger, for
the wrong calls to ask for.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, ClassVar, Final

from tallystick.canonical import Json
from tests.conformance.tau.corpus import GoldCall, Task

STRANGER: Final = "stranger_0000"

Look = tuple[str, dict[str, Any]]
"""A look-up: a tool and its arguments."""


class NotThere(Exception):
    """What a tool raises that is asked for what is not there.

    Args:
        code: The error's code in the contract.
    """

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class World:
    """The store of one task. Its tools are methods, which do what they are asked to.

    Args:
        task: The task whose gold calls say what there is.
    """

    others: ClassVar[dict[str, str]] = {}
    """What the stranger has, by the name of the argument that takes it."""
    idle: ClassVar[Look] = ("calculate", {"expression": "1 + 1"})
    """A call that may be made at any time."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.answers = 0
        self.has_stranger = True

    @property
    def subject(self) -> dict[str, Json]:
        """On whose behalf the run acts."""
        raise NotImplementedError

    def owner_of(self, kind: str, identifier: str | int) -> str | None:
        """Return whose an object is; None if there is no such object."""
        owner = self._owner(kind, str(identifier))
        return None if owner == STRANGER and not self.has_stranger else owner

    def _owner(self, kind: str, identifier: str) -> str | None:
        raise NotImplementedError

    def change(self, call: GoldCall, changes: dict[str, Json]) -> None:
        """Make the object that a call names otherwise."""
        if changes:
            self.named_by(call).update(changes)

    def named_by(self, call: GoldCall) -> dict[str, Any]:
        """Return the object that a call names, as it stands in the store."""
        raise NotImplementedError

    def look_elsewhere(self, call: GoldCall) -> Look:
        """Return a look at a twin, which is there from now on, of the object that a call names."""
        raise NotImplementedError

    def looks_before(self, call: GoldCall) -> Iterator[Look]:
        """Yield the look-ups that the policy asks for before a call, in order."""
        raise NotImplementedError

    def answer(self, tool: str, arguments: dict[str, Any]) -> Json:
        """Return what a tool answers: a copy, as if it came over a wire."""
        self.answers += 1
        return deepcopy(getattr(self, tool)(**arguments))

    def calculate(self, expression: str) -> Json:
        return expression

    def transfer_to_human_agents(self, summary: str) -> Json:
        return "Transfer successful"


def found(things: dict[str, Any], identifier: str, code: str) -> Any:
    """Return the thing with an identifier.

    Raises:
        NotThere: There is none.
    """
    if identifier not in things:
        raise NotThere(code)
    return things[identifier]


def named(task: Task, argument: str) -> list[Any]:
    """Return what the calls of a task name with an argument, in order."""
    values = (call.arguments.get(argument) for call in task.calls)
    return [each for each in values if each is not None]


def calls_about(task: Task, argument: str, identifier: str) -> list[GoldCall]:
    """Return the calls of a task that name a thing, in order."""
    return [call for call in task.calls if call.arguments.get(argument) == identifier]
