"""What the processes of a schedule noted, a line each; a kill leaves every whole line."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Journal:
    """What one process notes. ``generation`` counts the processes before it of the same name."""

    def __init__(self, folder: Path, name: str) -> None:
        self.generation = len(list(folder.glob(f"journal-{name}-*")))
        path = folder / f"journal-{name}-{self.generation}"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)

    def note(self, **facts: Any) -> None:
        os.write(self._file, json.dumps(facts).encode() + b"\n")


def read_journals(folder: Path) -> Iterator[dict[str, Any]]:
    """Read what all processes noted."""
    for path in sorted(folder.glob("journal-*")):
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                yield json.loads(line)
