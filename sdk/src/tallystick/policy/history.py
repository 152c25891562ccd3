"""What has happened in a run, as far as a policy asks. Frozen: each step gives another history."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from tallystick.canonical import Json
from tallystick.policy.call import Call
from tallystick.policy.limits import charges
from tallystick.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class Tally:
    """How often a tool was called in a run.

    Args:
        dispatched: How many calls were let through, whatever became of them.
        succeeded: How many of them succeeded.
    """

    dispatched: int = 0
    succeeded: int = 0


@dataclass(frozen=True, slots=True)
class CapturedFact:
    """A value that a result gave for a fact.

    Args:
        name: The fact.
        key: What it belongs to, as canonical JSON text; empty for a fact that has one value.
        value: The value; null if this result has none, which takes the place of an earlier value.
    """

    name: str
    key: str
    value: Json


@dataclass(frozen=True, slots=True)
class History:
    """What has happened in a run.

    Args:
        tallies: How often each tool was called.
        facts: The last value of each fact, by its name and key.
        spent: How many units of each limit are spent, by its name.
    """

    tallies: Mapping[str, Tally] = field(default_factory=dict[str, Tally])
    facts: Mapping[tuple[str, str], Json] = field(default_factory=dict[tuple[str, str], Json])
    spent: Mapping[str, Decimal] = field(default_factory=dict[str, Decimal])

    def dispatched(self, call: Call, policy: Policy) -> "History":
        """Return the history after a call was let through: it has spent its budgets.

        Raises:
            PolicyBlocked: Its arguments do not have an amount that a limit counts.
        """
        before = self.tallies.get(call.tool, Tally())
        after = Tally(before.dispatched + 1, before.succeeded)
        spent = dict(self.spent)
        for charge in charges(policy, call):
            name = charge.limit.name
            spent[name] = spent.get(name, Decimal(0)) + charge.units
        return History({**self.tallies, call.tool: after}, self.facts, spent)

    def succeeded(self, tool: str, facts: Iterable[CapturedFact]) -> "History":
        """Return the history after a call succeeded: it is a prior call now, and has its facts."""
        before = self.tallies.get(tool, Tally())
        after = Tally(before.dispatched, before.succeeded + 1)
        known = dict(self.facts)
        known.update({(fact.name, fact.key): fact.value for fact in facts})
        return History({**self.tallies, tool: after}, known, self.spent)
