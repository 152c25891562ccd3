"""The only place that prints: tables and sentences for people, one JSON value for programs."""

import json
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from cli import views
from cli.connection import JsonObject
from tallystick.errors import LocalRefusal, Outage, Refusal

View = Callable[[JsonObject], Sequence[RenderableType]]


class Output:
    """Where one command's answer goes, and in which of the two forms."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def show(self, value: JsonObject, view: View) -> None:
        """Write an answer to stdout: `value` itself as JSON, or what `view` makes of it."""
        if self.as_json:
            _write_json(value, sys.stdout)
        else:
            _write(view(value), Console())

    def fail(self, error: Refusal | Outage | LocalRefusal) -> None:
        """Write an error to stderr: as a problem document (RFC 9457), or as a sentence."""
        problem = problem_document(error)
        if self.as_json:
            _write_json(problem, sys.stderr)
        else:
            _write(views.problem(problem), Console(stderr=True))

    @contextmanager
    def draining(self, subject: str) -> Generator[Callable[[int], None]]:
        """Show on stderr how a drain goes; the caller says how many references are left."""
        progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[left]} left"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            disable=self.as_json,
            transient=True,
        )
        task = progress.add_task(f"Draining {subject}", total=None, left="?")

        def left(count: int) -> None:
            most = max(progress.tasks[task].total or 0, count)
            progress.update(task, total=most, completed=most - count, left=count)

        with progress:
            yield left


def problem_document(error: Refusal | Outage | LocalRefusal) -> JsonObject:
    """Return the error as a problem document, without the status that only HTTP has."""
    document: JsonObject = {
        "type": f"urn:tallystick:problem:{error.code}",
        "title": (type(error).__doc__ or "").partition("\n")[0],
        "detail": error.detail,
        "code": error.code,
        "retryable": error.retryable,
        "facts": error.facts,
    }
    if error.pointer is not None:
        document["pointer"] = error.pointer
    return document


def _write(parts: Sequence[RenderableType], console: Console) -> None:
    for part in parts:
        # A sentence or a field is never broken by us, so that what it holds can be copied whole.
        console.print(part, soft_wrap=isinstance(part, Text))


def _write_json(value: JsonObject, stream: TextIO) -> None:
    stream.write(json.dumps(value, indent=2) + "\n")
    # The service may run on for days after it said where it is.
    stream.flush()
