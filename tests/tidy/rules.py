"""The house rules that no off-the-shelf tool holds: each reads one file and names its faults.

A fault is one line: where, what, and the cure. `test_rules.py` shows each rule a bad sample, since
a check that cannot fail is a defect.
"""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "access",
    "audit",
    "cli",
    "kernel",
    "ledger",
    "migrations",
    "reconciler",
    "registry",
    "rollout",
    "sdk/src/tallystick",
    "server",
)
OTHERS = ("benchmarks", "examples", "tests")

FILE_LINES_MAX = 450
FUNCTION_LINES_MAX = 60
# Spelled in halves, so that this file passes its own rule.
MARK = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX")) + r")\b")
WALL_CLOCKS = frozenset(
    {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "datetime.today", "date.today"}
)
VAGUE = frozenset({"common", "constants", "helper", "helpers", "misc", "util", "utils"})


@dataclass(frozen=True)
class Source:
    """One Python file: its path from the root of the repository, and its text."""

    path: PurePosixPath
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=str(self.path))

    def is_under(self, *folders: str) -> bool:
        return any(self.path.is_relative_to(folder) for folder in folders)


@cache
def sources(*folders: str) -> tuple[Source, ...]:
    """Read every Python file under the folders, in the order of their paths."""
    return tuple(
        Source(PurePosixPath(path.relative_to(ROOT).as_posix()), path.read_text(encoding="utf-8"))
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
    )


def file_is_short(source: Source) -> Iterator[str]:
    # A migration is one step told to the end.
    if not source.is_under(*PACKAGES) or source.is_under("migrations"):
        return
    lines = len(source.text.splitlines())
    if lines > FILE_LINES_MAX:
        yield f"{source.path}: {lines} lines, more than {FILE_LINES_MAX}: split it by noun"


def function_fits_a_screen(source: Source) -> Iterator[str]:
    if not source.is_under(*PACKAGES):
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield (
                    f"{source.path}:{node.lineno}: {node.name} has {lines} lines, more than "
                    f"{FUNCTION_LINES_MAX}: keep the branches here and move the leaves out"
                )


def only_the_server_commits(source: Source) -> Iterator[str]:
    if not source.is_under(*PACKAGES) or source.is_under("server", "migrations"):
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and node.attr in {"commit", "rollback"}:
            yield (
                f"{source.path}:{node.lineno}: .{node.attr} outside server: "
                "take a store, and let the caller's transaction end it"
            )


def only_the_database_tells_the_time(source: Source) -> Iterator[str]:
    """A process whose clock is wrong decides what every other one does: by the database's."""
    # A lockfile is dated by who writes it, and a person at a command reads their own clock.
    own_clock = ("cli", "migrations", "sdk/src/tallystick/lockfile")
    if not source.is_under(*PACKAGES) or source.is_under(*own_clock):
        return
    for node in ast.walk(source.tree):
        match node:
            case ast.Attribute(ast.Name(module), name) if f"{module}.{name}" in WALL_CLOCKS:
                yield (
                    f"{source.path}:{node.lineno}: {module}.{name}: take the database's time, "
                    "or a monotonic clock for how long something took"
                )
            case _:
                pass


def nothing_is_left_for_later(source: Source) -> Iterator[str]:
    for number, line in enumerate(source.text.splitlines(), start=1):
        if mark := MARK.search(line):
            yield f"{source.path}:{number}: {mark[0]}: do it now, or write an issue"


def file_is_named_after_a_noun(source: Source) -> Iterator[str]:
    if source.path.stem in VAGUE:
        yield f"{source.path}: '{source.path.stem}' says nothing: name the noun that lives here"


Rule = Callable[[Source], Iterator[str]]
RULES: tuple[Rule, ...] = (
    file_is_short,
    function_fits_a_screen,
    only_the_server_commits,
    only_the_database_tells_the_time,
    nothing_is_left_for_later,
    file_is_named_after_a_noun,
)
