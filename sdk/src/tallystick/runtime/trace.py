"""The trace of a run: each call with its gate, what the model was told, and what it really was."""

import json
import threading
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tallystick.canonical import Json


@dataclass(frozen=True, slots=True)
class Entry:
    """One call of a run.

    Args:
        run: The run, by a name that tells it from the others in one file.
        policy: The digest of the policy in force; None for none.
        at: When it was made.
        seconds: How long it took, a person's word included.
        tool: The tool that was asked for.
        arguments: Its arguments, without what the contract marks as sensitive; None where there is
            no contract to say what that is, or no object.
        decision: `allow`, `needs_human` or `block`.
        gate: The gate that refused it; None if it ran and succeeded.
        code: What the model was told: `ok`, or the code of the error.
        true_code: What it really was: `not_owner` where `not_found` is told.
        rule: The rule of the policy that decided.
        message: The sentence that the model was told; empty if it got a result.
        result: The result of a call that succeeded, without what is sensitive; else None.
        approved_by: The person who approved it, if one was asked.
        ends_run: Whether it is no tool's call, but the resolution.
        asked_for: The tool on whose account the runtime itself has looked up an owner with this
            one. It is no call of the model's, the policy is not asked, and the result is nobody's
            to see.
    """

    run: str
    policy: str | None
    at: datetime
    seconds: float
    tool: str
    arguments: Json
    decision: str
    gate: str | None
    code: str
    true_code: str
    rule: str | None
    message: str
    result: Json = None
    approved_by: str | None = None
    ends_run: bool = False
    asked_for: str | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the entry as a JSON object; its last members only where there is something."""
        entry: dict[str, Json] = {
            "run": self.run,
            "policy": self.policy,
            "at": self.at.isoformat(timespec="milliseconds"),
            "seconds": round(self.seconds, 6),
            "tool": self.tool,
            "arguments": self.arguments,
            "decision": self.decision,
            "gate": self.gate,
            "code": self.code,
            "true_code": self.true_code,
            "rule": self.rule,
            "message": self.message,
        }
        if self.gate is None and self.asked_for is None:
            entry["result"] = self.result
        if self.approved_by is not None:
            entry["approved_by"] = self.approved_by
        if self.ends_run:
            entry["ends_run"] = True
        if self.asked_for is not None:
            entry["asked_for"] = self.asked_for
        return entry


class Trace:
    """The entries of one run, in the order in which the calls ended; written down as JSON lines.

    Args:
        path: The file that each entry is added to as one line; None for no file.
    """

    def __init__(self, path: str | Path | None) -> None:
        self._path = None if path is None else Path(path)
        self._lock = threading.Lock()
        self._entries: list[Entry] = []

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries so far."""
        return tuple(self._entries)

    def add(self, entry: Entry) -> None:
        """Add an entry.

        Raises:
            OSError: The file cannot be written.
        """
        with self._lock:
            self._entries.append(entry)
            if self._path is not None:
                line = json.dumps(entry.to_json(), ensure_ascii=False, separators=(",", ":"))
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(f"{line}\n")
