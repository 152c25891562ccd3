"""One run of one task, behind the gates: the runtime with the task's world as its tools."""

from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from tallystick.canonical import Json
from tallystick.gates.denial import Gate
from tallystick.policy import Policy
from tallystick.runtime import PolicyRuntime
from tests.conformance.tau.airline import Airline
from tests.conformance.tau.contracts import contracts
from tests.conformance.tau.corpus import GoldCall, Task
from tests.conformance.tau.mutations import Stop
from tests.conformance.tau.retail import Retail
from tests.conformance.tau.telecom import Telecom
from tests.conformance.tau.world import World

POLICIES = Path(__file__).parent / "policies"
WORLDS: Final[dict[str, type[World]]] = {
    "retail": Retail,
    "airline": Airline,
    "telecom": Telecom,
}
TENANT: Final = "tau"


@cache
def policy(domain: str) -> Policy:
    """Return the policy of a domain."""
    return Policy.load(POLICIES / f"{domain}.yaml")


@cache
def runtime(domain: str) -> PolicyRuntime:
    """Return the tools of a domain behind the gates; each run has its own world put in."""
    made = PolicyRuntime(policy(domain), tenant=TENANT)
    for name, contract in contracts(domain).items():
        made.tool(name, contract=contract, injected=("world",))(partial(_answer, name))
    return made


def _answer(tool: str, /, world: World, **arguments: Any) -> Any:
    return world.answer(tool, arguments)


@dataclass(frozen=True, slots=True)
class Told:
    """How a call ended.

    Args:
        stop: What stopped it; None if nothing did.
        rule: The part of the policy that did.
        text: What the model is told.
    """

    stop: Stop | None
    rule: str | None
    text: str


class Run:
    """One run.

    Args:
        task: Its task.
        granted: The capabilities that it holds; None for all.
        asks_tools: Whether tools say who owns an object, as their contracts have it, and not the
            application.
    """

    def __init__(
        self, task: Task, granted: frozenset[str] | None = None, *, asks_tools: bool = False
    ) -> None:
        self.task = task
        self.world = WORLDS[task.domain](task)
        self._looks: list[tuple[str, Json]] = []
        self._runtime = runtime(task.domain).for_run(
            subject=self.world.subject,
            granted=granted,
            owner_of=None if asks_tools else self.world.owner_of,
            injected={"world": self.world},
        )

    def call(self, tool: str, arguments: Any) -> Told:
        """Make a call, as a model does."""
        text = self._runtime.answer(tool, arguments).text()
        entry = self._runtime.trace[-1]
        if entry.gate is None:
            self._looks.append((tool, entry.arguments))
            return Told(None, None, text)
        return Told(Stop(Gate(entry.gate), entry.code, entry.true_code), entry.rule, text)

    def look_first(self, call: GoldCall, without: str | None = None) -> None:
        """Make the look-ups before a write that the policy asks for, and that were not made yet.

        Args:
            call: The call that they are for.
            without: The tool whose look-ups are left out.
        """
        contract = contracts(self.task.domain).get(call.tool)
        if contract is None or contract.kind == "read":
            return
        for look in self.world.looks_before(call):
            if look[0] != without and look not in self._looks:
                told = self.call(*look)
                assert told.stop is None, f"{look} before {call}: {told}"

    def spend_all(self) -> None:
        """Spend what is left of the calls of this run."""
        while self.call(*self.world.idle).stop is None:
            pass
