"""What `@contract` costs at import, and how often its answer is right, beside its peer toolpact.

    .venv/bin/python benchmarks/lockfile.py [--tools 200] [--runs 9] [--json]

The first table imports one module of many tools in fresh processes, everyone in turn, so that what
else the machine does falls on all alike. Its tools are annotated, documented, and have a nested
model each. "Pydantic's schemas" makes the schemas that Pydantic makes of them and keeps nothing:
what exceeds it is ours. "First" imports write the lockfile, the others find it.

The second table gives both the changes of `lockfile_changes.py`, each a module that was accepted
and then changed. Levels `unchanged` and `text` stop nobody, and count as one. The peer knows no
`review`: there, its "non-breaking" counts as right, if it names what changed. What it does not
look at, results and effects, is counted by itself. The peer is installed below `.venv`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lockfile_changes import CHANGES, HEAD, Change

ROOT = Path(__file__).parents[1]
PEER = ROOT / ".venv" / "toolpact"
INSTALLED: Final = "toolpact==0.1.0"

PLAIN = """
def tool(function=None, **stated):
    return function or tool
"""
SCHEMAS = """
from pydantic import TypeAdapter

def tool(function):
    TypeAdapter(function).json_schema()
    return function
"""
OURS = "from tallystick import contract as tool\n"
# Each module has a lockfile of its own: the peer would take tools of one short name for one.
TOOLPACT = """
from pathlib import Path
from toolpact import pact

def tool(function=None, **stated):
    return pact(function, lockfile=Path(f"{function.__module__}.lock")) if function else tool
"""


def run(
    folder: Path, *command: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, as a developer would: not in CI, and with nothing stated."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("CI", "PYTHONDONTWRITEBYTECODE") and not name.startswith("TALLYSTICK_")
    }
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**inherited, "PYTHONPATH": str(PEER), **(environment or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def install_peer() -> None:
    if not PEER.exists():
        print(f"Installing the peer into {PEER} ...", file=sys.stderr)
        command = [sys.executable, "-m", "uv", "pip", "install", "-q", "--target", str(PEER)]
        subprocess.run([*command, INSTALLED], check=True)


def project(folder: Path, tool: str, modules: Mapping[str, str]) -> Path:
    """Write a project whose modules declare their tools by `tool`."""
    folder.mkdir(exist_ok=True)
    files = {"pyproject.toml": "", "tool.py": tool}
    for name, code in (files | {f"{name}.py": code for name, code in modules.items()}).items():
        (folder / name).write_text(code)
    return folder


# --- what an import costs -------------------------------------------------------------------------

MODEL = '''

class Place{i}(BaseModel):
    """Where it goes."""

    street: str = Field(description="Street and number.")
    city: str
    zip: Annotated[str, Field(pattern="^[0-9]{{4,5}}$")]
    country: Literal["AT", "CH", "DE"] = "AT"
'''
TOOL = '''

@tool
def send_{i}(
    customer: str,
    place: Place{model},
    amount: Annotated[int, Field(ge=1)] = 1,
    at: datetime.date | None = None,
    tags: list[str] | None = None,
) -> dict[str, int]:
    """Send goods of kind {i} to a customer.

    Use it when the order is paid.

    Args:
        customer: Who gets it, by number.
        place: Where it goes.
        amount: How many of them.
        at: The day; the next one if there is none.
        tags: What to print
            on the parcel.

    Returns:
        How many were sent, by warehouse.
    """
    return {{}}
'''
TIMED = """
import time
wall, processor = time.perf_counter(), time.process_time()
import tools
print(time.perf_counter() - wall, time.process_time() - processor)
"""
LOCKFILES: Final = ("tallystick.lock", "tools.lock")
# Who imports, by which decorator, and whether the lockfile is there.
IMPORTS: Final = (
    ("undecorated", PLAIN, True),
    ("Pydantic's schemas", SCHEMAS, True),
    ("tallystick", OURS, True),
    ("tallystick, first", OURS, False),
    ("toolpact", TOOLPACT, True),
    ("toolpact, first", TOOLPACT, False),
)


def tools_module(count: int) -> str:
    models = "".join(MODEL.format(i=each) for each in range((count + 9) // 10))
    tools = "".join(TOOL.format(i=each, model=each // 10) for each in range(count))
    return HEAD + models + tools


def seconds_of(folder: Path, *, has_lockfile: bool) -> tuple[float, float]:
    """Import the module in a fresh process; return seconds by the wall and of the processor."""
    if not has_lockfile:
        for name in LOCKFILES:
            (folder / name).unlink(missing_ok=True)
    done = run(folder, "-c", TIMED)
    if done.returncode:
        raise SystemExit(f"{folder.name} failed:\n{done.stderr}")
    wall, processor = done.stdout.split()
    return float(wall), float(processor)


def measure(folder: Path, count: int, runs: int) -> dict[str, tuple[float, float]]:
    """Return the medians, in milliseconds, by who imports."""
    module = tools_module(count)
    folders = {
        name: project(folder / str(index), tool, {"tools": module})
        for index, (name, tool, _) in enumerate(IMPORTS)
    }
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in folders}
    for round_ in range(runs + 1):
        for name, _, has_lockfile in IMPORTS:
            seconds = seconds_of(folders[name], has_lockfile=has_lockfile or not round_)
            if round_:  # the first one compiles the modules, and writes the lockfiles
                taken[name].append(seconds)
    return {
        name: (
            1e3 * statistics.median(wall for wall, _ in each),
            1e3 * statistics.median(processor for _, processor in each),
        )
        for name, each in taken.items()
    }


def print_imports(medians: Mapping[str, tuple[float, float]], count: int, runs: int) -> None:
    print(f"Import of {count} tools, medians of {runs} fresh processes, in ms")
    print(f"{'':22}{'wall':>8}{'CPU':>8}{'beyond Pydantic, wall':>24}{'CPU':>8}")
    base = medians["Pydantic's schemas"]
    for name, (wall, processor) in medians.items():
        print(
            f"{name:22}{wall:8.0f}{processor:8.0f}{wall - base[0]:24.0f}{processor - base[1]:8.0f}"
        )


# --- what the answers are worth -------------------------------------------------------------------

# Imports each module, and says of each that fails: how.
DRIVER = """
import importlib, json, sys

def failure(name):
    try:
        importlib.import_module(name)
    except Exception as error:
        return [type(error).__name__, str(error)]

print(json.dumps({name: failure(name) for name in sys.argv[1:]}))
"""
MEANS: Final = {
    "unchanged": {"passes"},
    "text": {"passes"},
    "compatible": {"compatible"},
    "review": {"review"},
    "breaking": {"breaking"},
    "removed": {"breaking"},
    "non-breaking": {"compatible", "review"},
    "BREAKING": {"breaking"},
}
MODULES: Final = {f"case_{index:02}": each for index, each in enumerate(CHANGES)}


@dataclass(frozen=True, slots=True)
class Asked:
    """What both say of a change, each in its own words."""

    change: Change
    ours: str
    peer: str

    def is_right(self, answer: str) -> bool:
        return self.change.truth in MEANS.get(answer, ())

    def shown(self, answer: str) -> str:
        return answer if self.is_right(answer) else f"{answer} (!)"

    def to_json(self) -> dict[str, Any]:
        stated = {"title": self.change.title, "truth": self.change.truth}
        return {
            **stated,
            "beyond": self.change.beyond,
            "tallystick": self.ours,
            "toolpact": self.peer,
        }


def imported(folder: Path) -> dict[str, list[str] | None]:
    # Compiled modules are known by their second and size, and these change faster.
    done = run(folder, "-B", "-c", DRIVER, *MODULES)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def codes(*, new: bool) -> dict[str, str]:
    return {name: HEAD + (change.new if new else change.old) for name, change in MODULES.items()}


def ask_ours(folder: Path) -> dict[str, str]:
    refused = imported(project(folder, OURS, codes(new=False)))
    project(folder, OURS, codes(new=True))
    done = run(folder, "-B", "-m", "tallystick", "check", "--json", *MODULES)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stdout + done.stderr)
    levels: dict[str, set[str]] = {name: set() for name in MODULES}
    for row in json.loads(done.stdout)["tools"]:
        levels[row["name"].partition(".")[0]].add(row["level"])
    return {
        name: f"error: {refused[name]}" if refused[name] else "/".join(sorted(found))
        for name, found in levels.items()
    }


def ask_peer(folder: Path) -> dict[str, str]:
    first = imported(project(folder, TOOLPACT, codes(new=False)))
    then = imported(project(folder, TOOLPACT, codes(new=True)))
    return {name: peer_answer(first[name] or then[name]) for name in MODULES}


def peer_answer(failure: list[str] | None) -> str:
    if failure is None:
        return "unchanged"
    kind, text = failure
    if kind != "PactChanged":
        return f"error: {kind}"
    if "no changes" in text:
        return "stops, names nothing"
    return "BREAKING" if "[BREAKING]" in text else "non-breaking"


def print_answers(asked: list[Asked]) -> None:
    print(f"\n{len(asked)} changes of tools{'truth':>37}  {'tallystick':14}{'toolpact':20}")
    for each in asked:
        ours, peer = each.shown(each.ours), each.shown(each.peer)
        print(f"{each.change.title:46}{each.change.truth:>12}  {ours:14}{peer:20}".rstrip())
    for title, beyond in (("the arguments", False), ("results and effects", True)):
        rows = [each for each in asked if each.change.beyond is beyond]
        ours = sum(not each.is_right(each.ours) for each in rows)
        peer = sum(not each.is_right(each.peer) for each in rows)
        print(f"Wrong about {title}, of {len(rows)}: tallystick {ours}, toolpact {peer}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=int, default=200, help="how many tools the module has")
    parser.add_argument("--runs", type=int, default=9, help="how many times each is imported")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    chosen = parser.parse_args()
    install_peer()
    with tempfile.TemporaryDirectory() as folder:
        medians = measure(Path(folder), chosen.tools, chosen.runs)
        ours = ask_ours(Path(folder, "ours"))
        peer = ask_peer(Path(folder, "peer"))
    asked = [Asked(each, ours[name], peer[name]) for name, each in MODULES.items()]
    if chosen.json:
        shown = {"milliseconds": medians, "changes": [each.to_json() for each in asked]}
        print(json.dumps(shown, indent=2))
    else:
        print_imports(medians, chosen.tools, chosen.runs)
        print_answers(asked)


if __name__ == "__main__":
    main()
