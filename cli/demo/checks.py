"""What the demo holds the system to. Pure."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was tried: whether it went as it has to, and what the system answered."""

    name: str
    ok: bool
    detail: str


@dataclass(slots=True)
class Checks:
    """The checks so far."""

    done: list[Check] = field(default_factory=list[Check])

    def add(self, name: str, *, ok: bool, detail: str) -> Check:
        """Record a check."""
        check = Check(name, ok, detail)
        self.done.append(check)
        return check

    @property
    def failed(self) -> int:
        """How many checks did not hold."""
        return sum(not check.ok for check in self.done)

    @property
    def ok(self) -> bool:
        """Whether every check held; a demo that checked nothing has shown nothing."""
        return bool(self.done) and not self.failed

    @property
    def exit_code(self) -> int:
        """The exit code of a demo with these checks."""
        return 0 if self.ok else 1
