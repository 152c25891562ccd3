"""A call that a gate refuses before anything of it is recorded. Pure."""

from dataclasses import dataclass

from tallystick.errors import Refusal
from tallystick.gates.denial import Denial


@dataclass(frozen=True, slots=True)
class GateRefusal:
    """One line of a run's trace: which call was refused where, what was told, and why in truth.

    ``number`` is the effect's in its run, None where there is none.
    """

    number: int | None
    tool: str
    version: str
    denial: Denial
    policy: str | None = None
    policy_revision: int | None = None


class Refused(Exception):
    """Undoes the plan of a refused call.

    Whoever catches it writes the line into the trace of the caller's run, in a transaction of its
    own, and then raises what is told.
    """

    def __init__(self, run: str, line: GateRefusal) -> None:
        super().__init__(run, line)
        self.run = run
        self.line = line

    @property
    def told(self) -> Refusal:
        """What the caller is told."""
        refusal = self.line.denial.refusal
        assert isinstance(refusal, Refusal), "the gates before the service raise refusals"
        return refusal
