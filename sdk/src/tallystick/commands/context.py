"""What a command is given of the world: where it writes and stands, and the way to a registry."""

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeAlias

from tallystick.canonical import Json
from tallystick.commands.terminal import Painter

if TYPE_CHECKING:
    from tallystick.client import AsyncClient

Connect: TypeAlias = Callable[[], AbstractAsyncContextManager["AsyncClient"]]


@dataclass(frozen=True, slots=True)
class Context:
    """One run of the command.

    Args:
        prog: How it was called, for messages: `tallystick` or `registry lock`.
        stdout: Where answers go.
        stderr: Where everything else goes.
        environment: The environment's variables.
        cwd: The folder in which it runs.
        now: The clock, as an RFC 3339 time in UTC: `2026-11-30T10:00:00Z`.
        connect: Opens the way to a registry, where the caller has one of its own.
    """

    prog: str
    stdout: TextIO
    stderr: TextIO
    environment: Mapping[str, str]
    cwd: Path
    now: Callable[[], str]
    connect: Connect | None = None

    def say(self, *lines: str) -> None:
        """Write lines of the answer."""
        self.stdout.writelines(f"{line}\n" for line in lines)

    def note(self, *lines: str) -> None:
        """Write lines beside the answer: to stderr."""
        self.stderr.writelines(f"{line}\n" for line in lines)

    def say_json(self, value: Json) -> None:
        """Write the answer as one JSON value."""
        self.say(json.dumps(value, indent=2))

    def painter(self) -> Painter:
        """Return what colours an answer that goes to stdout."""
        return Painter.of(self.stdout, self.environment)

    def lockfile(self, given: str | None) -> Path:
        """Return the lockfile that is meant: the one given, else the one that belongs here."""
        from tallystick.lockfile.location import lockfile_for

        if given is None:
            found = lockfile_for(None, environment=self.environment, cwd=self.cwd)
        else:
            found = self.cwd / given
        # One spelling for each folder. The file itself may be a link, and is called as it is.
        return found.parent.resolve() / found.name
