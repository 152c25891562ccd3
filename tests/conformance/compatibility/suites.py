"""The public suites as questions: does everything that `old` accepts satisfy `new`?

Read in place from the corpus, in the order of its files. What a suite says of a question is its
`truth`, and where nobody knows it is None: then only a wrong proof or a wrong witness can be found.
"""

import json
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from tallystick.canonical import Json
from tallystick.compatibility.judging import Side
from tallystick.errors import Refusal
from tallystick.schema import check_schema
from tests.conformance.compatibility.edits import edited

ROOT = Path(__file__).parents[3]
CORPUS = ROOT.parent / "shared" / "corpus"

DIALECTS: Final = {
    "draft-04": "http://json-schema.org/draft-04/schema#",
    "draft-06": "http://json-schema.org/draft-06/schema#",
    "draft-07": "http://json-schema.org/draft-07/schema#",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}
KNOWN: Final = frozenset(DIALECTS.values())


@dataclass(frozen=True, slots=True)
class Case:
    """One question of a suite.

    Args:
        id: Names it in reports, and in `disputed.py`.
        dialects: The dialect of the old schema and of the new one, values of `DIALECTS`.
        truth: What the suite says.
        assert_format: Whether both sides assert `format`.
        is_closed: Whether both sides are read as by a declared producer.
    """

    id: str
    dialects: tuple[str, str]
    old: Json
    new: Json
    truth: bool | None = None
    assert_format: bool = False
    is_closed: bool = False

    def sides(self) -> tuple[Side, Side]:
        """Return the writer and the reader."""
        old, new = self.dialects
        told = (self.assert_format, self.is_closed)
        return Side(self.old, old, *told), Side(self.new, new, *told)

    def is_publishable(self) -> bool:
        """Return whether both sides are schemas that a contract may have."""
        try:
            for schema, dialect in zip((self.old, self.new), self.dialects, strict=True):
                check_schema(schema, dialect=dialect, pointer="")
        except Refusal:
            return False
        return True


def question(name: str, old: Json, new: Json, *, draft: str, truth: bool | None = None) -> Case:
    """Return a question about two schemas, each of the dialect that it states or of a draft."""
    dialects = dialect_of(old, draft), dialect_of(new, draft)
    return Case(name, dialects, old, new, truth)


def dialect_of(schema: Json, draft: str) -> str:
    """Return the dialect that a schema states, or else that of a draft."""
    stated = schema.get("$schema") if isinstance(schema, dict) else None
    return stated if isinstance(stated, str) and stated in KNOWN else DIALECTS[draft]


def both_directions(case: Case) -> tuple[Case, Case]:
    """Return a case and the question turned round, which nobody has answered."""
    return (
        replace(case, id=f"{case.id}/forward"),
        replace(
            case,
            id=f"{case.id}/backward",
            old=case.new,
            new=case.old,
            dialects=case.dialects[::-1],
            truth=None,
        ),
    )


def both_producers(cases: Iterable[Case]) -> Iterator[Case]:
    """Yield each case as any producer and as a declared one reads it."""
    for case in cases:
        yield replace(case, id=f"{case.id}/any")
        yield replace(case, id=f"{case.id}/declared", is_closed=True)


# --- vendors --------------------------------------------------------------------------------------


def _vendor(name: str) -> Iterator[Case]:
    for row in _lines("merged/vendor_cases_apache.jsonl"):
        if row["id"].startswith(f"{name}/"):
            yield question(
                row["id"], row["old"], row["new"], draft=row["draft"], truth=row["truth"]
            )


def _probes() -> Iterator[Case]:
    for row in _lines("merged/probes.jsonl"):
        name = f"probes/{row['id']}"
        yield question(name, row["old"], row["new"], draft=row["draft"], truth=row["truth"])


def _sentry() -> Iterator[Case]:
    """Yield the pairs of json-schema-diff, which expects a list of changes and no answer."""
    root = CORPUS / "getsentry-json-schema-diff" / "tests" / "fixtures"
    for path in sorted(root.glob("**/*.json")):
        row = _read(path)
        name = path.relative_to(root).with_suffix("").as_posix()
        case = question(f"sentry/{name}", row["lhs"], row["rhs"], draft="draft-07")
        yield from both_directions(case)


def _jsoncompat() -> Iterator[Case]:
    """Yield its fixtures: a deserialiser reads what was written before, a serialiser is read."""
    for folder in sorted((CORPUS / "ostrowr-jsoncompat/tests/fixtures/backcompat").iterdir()):
        old, new, expect = (_read(folder / f"{name}.json") for name in ("old", "new", "expect"))
        for role, pair in {"deserializer": (old, new), "serializer": (new, old)}.items():
            name = f"jsoncompat/{folder.name}/{role}"
            yield question(name, *pair, draft="2020-12", truth=expect[role])


def _openapi() -> Iterator[Case]:
    """Yield the schemas that stand at one place in both documents of a fixture; nobody says how."""
    for folder in sorted((CORPUS / "ostrowr-jsoncompat/tests/fixtures/openapi_compat").iterdir()):
        old, new = (
            {place: _standalone(schema, document) for place, schema in _schemas(document)}
            for document in (_read(folder / "old.json"), _read(folder / "new.json"))
        )
        for place in sorted(old.keys() & new.keys()):
            case = question(
                f"openapi/{folder.name}{place}", old[place], new[place], draft="2020-12"
            )
            yield from both_producers(both_directions(case))


def _schemas(value: Any, place: str = "") -> Iterator[tuple[str, Json]]:
    """Yield what an OpenAPI document calls a schema, each with its place."""
    parts = enumerate(value) if isinstance(value, list) else value.items()
    for name, part in parts:
        if name == "schema":
            yield f"{place}/{name}", part
        elif isinstance(part, dict | list) and name != "components":
            yield from _schemas(part, f"{place}/{name}")


def _standalone(schema: Json, document: Any) -> Json:
    if not isinstance(schema, dict) or "components" not in document:
        return schema
    text = json.dumps({**schema, "$defs": document["components"]["schemas"]})
    return json.loads(text.replace("#/components/schemas/", "#/$defs/"))


# --- containment by construction ------------------------------------------------------------------

FORWARD, REVERSE = "s1SubsetEqOfs2", "s2SubsetEqOfs1"


def _containment(draft: str, test: str, *, is_core: bool) -> Iterator[Case]:
    """Yield the questions of one draft and one of its two tests.

    Those under `optional/format` assert formats; all others hold with formats as annotations.
    """
    dialect = DIALECTS["draft-07" if draft == "draft7" else "2020-12"]
    root = CORPUS / "containment" / draft
    for path in sorted(root.glob("**/*.json")):
        name = path.relative_to(root).with_suffix("").as_posix()
        if ("/optional/" in name) is is_core:
            continue
        for row in _read(path):
            old, new = (row["schema1"], row["schema2"])[:: 1 if test == FORWARD else -1]
            if test in row["tests"]:
                yield Case(
                    f"containment/{draft}/{name}/{row['id']}/{test}",
                    (dialect, dialect),
                    old,
                    new,
                    row["tests"][test],
                    assert_format="/optional/format/" in name,
                )


# --- tools ----------------------------------------------------------------------------------------


def _github() -> Iterator[Case]:
    """Yield what GitHub's server really changed of its input schemas, in both directions."""
    for case in _modified():
        if case.old != case.new:
            yield from both_producers(both_directions(case))


def _github_other() -> Iterator[Case]:
    """Yield the changes of its tools that left their input schemas as they were."""
    for case in _modified():
        if case.old == case.new:
            yield from both_producers([replace(case, truth=True)])


def _modified() -> Iterator[Case]:
    rows = _read(CORPUS / "github-mcp-server" / "toolsnaps_history.json")
    for number, row in enumerate(rows):
        old, new = ((row[side] or {}).get("inputSchema") for side in ("old", "new"))
        if row["status"] == "modified" and old is not None and new is not None:
            yield question(f"github/{number}/{row['tool']}", old, new, draft="2020-12")


@cache
def tool_schemas() -> tuple[tuple[str, Json], ...]:
    """Return every input and output schema of every tool of the corpus, each with its name."""
    found: list[tuple[str, Json]] = []
    for source in ("livemcpbench", "mcp-snapshots"):
        for number, server in enumerate(_read(CORPUS / source / "tools.json")["data"]):
            for tool in server["tools"]:
                name = f"{source}/{number}/{tool['name']}"
                found += [
                    (f"{name}/{side}", tool[side])
                    for side in ("inputSchema", "outputSchema")
                    if side in tool
                ]
    for domain in ("airline", "retail"):
        for tool in _read(CORPUS / "tau-bench" / f"{domain}_tools.json")["tools"]:
            function = tool["function"]
            found.append((f"tau-bench/{domain}/{function['name']}", function["parameters"]))
    for tool in _read(CORPUS / "github-mcp-server" / "toolsnaps_head.json")["tools"]:
        found.append((f"github-head/{tool['tool_file']}", tool["snap"]["inputSchema"]))
    return tuple(found)


def _tools() -> Iterator[Case]:
    """Yield every tool's schema beside a few small edits of itself, where that can be published."""
    for name, schema in tool_schemas():
        chance = random.Random(name)
        new = edited(schema, chance.choice, chance.choice((1, 1, 2, 3)))
        case = question(f"tools/{name}", schema, new, draft="2020-12")
        if case.is_publishable():
            yield from both_producers(both_directions(case))


SUITES: Final[dict[str, Callable[[], Iterator[Case]]]] = {
    "apicurio": lambda: _vendor("apicurio"),
    "karapace": lambda: _vendor("karapace"),
    "jsonsubschema": lambda: _vendor("jsonsubschema"),
    "probes": _probes,
    "containment draft-07": lambda: _containment("draft7", FORWARD, is_core=True),
    "containment 2020-12": lambda: _containment("draft2020-12", FORWARD, is_core=True),
    "reverse draft-07": lambda: _containment("draft7", REVERSE, is_core=True),
    "reverse 2020-12": lambda: _containment("draft2020-12", REVERSE, is_core=True),
    "optional draft-07": lambda: _containment("draft7", FORWARD, is_core=False),
    "optional 2020-12": lambda: _containment("draft2020-12", FORWARD, is_core=False),
    "jsoncompat": _jsoncompat,
    "openapi": _openapi,
    "sentry": _sentry,
    "github": _github,
    "github, other": _github_other,
    "tools": _tools,
}


@cache
def cases(suite: str) -> tuple[Case, ...]:
    """Return the questions of a suite, one of `SUITES`, in a fixed order."""
    return tuple(SUITES[suite]())


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _lines(name: str) -> list[Any]:
    return [json.loads(line) for line in (CORPUS / name).read_text(encoding="utf-8").splitlines()]
