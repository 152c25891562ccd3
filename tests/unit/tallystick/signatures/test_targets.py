"""What can be declared: functions, methods, partials, objects; where it stands, how it is named."""

import functools
import subprocess
import sys
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import pytest

from tallystick.contract_rules import contract_schema
from tallystick.errors import SignatureUnsupported
from tallystick.signatures.document import document_of
from tallystick.signatures.naming import NAME_CHARS_MAX, NAME_PATTERN, name_of
from tallystick.signatures.target import Origin, definition_of, origin_of
from tallystick.signatures.terms import Injected, Terms

HERE = Path(__file__)


def load(name: str) -> Any:
    """Return the module of a file in this folder, which is no package."""
    spec = spec_from_file_location(name, HERE.with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


later = load("later")


def properties(target: object, **stated: Any) -> list[str]:
    document: Any = document_of(target, Terms(name="a", **stated))
    return [*document["input_schema"]["properties"]]


def declared(target: Any) -> Any:
    """Note a target's parameters, as a decorator in a class body sees it."""
    definition_of(target).seen = properties(target)
    return target


def wrapping(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


def search(query: str, limit: int = 3) -> str:
    """Search."""
    return query * limit


async def search_later(query: str) -> str:
    """Search."""
    return query


class Service:
    """Serves."""

    @declared
    def method(self, query: str):
        """Search."""

    @declared
    @classmethod
    def class_outside(cls, query: str):
        """Search."""

    @classmethod
    @declared
    def class_inside(cls, query: str):
        """Search."""

    @declared
    @staticmethod
    def static_outside(query: str):
        """Search."""

    @staticmethod
    @declared
    def static_inside(query: str):
        """Search."""

    @declared
    @wrapping
    def wrapped(self, query: str):
        """Search."""

    @declared
    @classmethod
    def odd_receiver(klass, query: str):  # type: ignore[reportSelfClsParameterName]  # noqa: N804
        """Search."""

    def __call__(self, query: str):
        """Search."""


class Undocumented(Service):
    """Serves others."""

    def __call__(self, query: str): ...


METHODS = [
    *("method", "class_outside", "class_inside", "static_outside", "static_inside", "wrapped"),
    "odd_receiver",
]


@pytest.mark.parametrize("name", METHODS)
def test_the_receiver_of_a_method_is_no_parameter(name):
    assert definition_of(vars(Service)[name]).seen == ["query"]
    assert properties(getattr(Service(), name)) == ["query"]


@pytest.mark.parametrize(
    ("target", "names"),
    [
        (search, ["query", "limit"]),
        (search_later, ["query"]),
        (wrapping(search), ["query", "limit"]),
        (functools.lru_cache(search), ["query", "limit"]),
        (functools.partial(search, "x"), ["limit"]),
        (functools.partial(search, limit=5), ["query", "limit"]),
        (functools.partial(Service().method), ["query"]),
        (functools.partial(Service.method, Service()), ["query"]),
        (Service.method, ["query"]),
        (Service(), ["query"]),
        (contextmanager(search), ["query", "limit"]),  # type: ignore[arg-type]
    ],
)
def test_what_can_be_called_has_the_parameters_that_a_caller_gives(target, names):
    assert properties(target) == names


def test_a_partial_s_value_is_the_default():
    document: Any = document_of(functools.partial(search, limit=5), Terms(name="a"))
    assert document["input_schema"]["properties"]["limit"] == {"type": "integer", "default": 5}
    assert document["input_schema"]["required"] == ["query"]


def test_an_object_is_explained_by_its_method_or_else_by_its_class():
    assert document_of(Service(), Terms(name="a"))["description"] == "Search."
    assert document_of(Undocumented(), Terms(name="a"))["description"] == "Serves others."


# --- what no caller gives -------------------------------------------------------------------------


def test_what_is_injected_stays_out():
    def tool(query: str, /, session: Annotated[object, Injected], *rest, clock: "Absent"):  # type: ignore[name-defined]  # noqa: F821
        """Search."""

    def marked(query: str, session: Annotated[ModuleType, "d", Injected()]):
        """Search."""

    injected = ("query", "rest", "clock")
    assert properties(tool, injected=injected) == []
    assert properties(marked) == ["query"]


# --- annotations that are text --------------------------------------------------------------------


def test_text_is_evaluated_where_it_stands():
    document: Any = document_of(later.search, Terms(name="a"))
    assert document["input_schema"]["properties"]["place"] == {"$ref": "#/$defs/Place"}
    assert document["output_schema"]["items"] == {"$ref": "#/$defs/Place"}
    assert properties(later.given) == ["query"]
    assert properties(later.hidden, injected=("pattern",)) == ["query"]
    assert properties(wrapping(later.search)) == ["place", "count"]


@pytest.mark.parametrize("as_method", [False, True])
def test_names_of_the_surroundings_are_known_while_they_run(as_method):
    document = later.local_document(as_method=as_method)
    assert document["input_schema"]["properties"]["x"] == {"$ref": "#/$defs/Local"}


# --- names and places -----------------------------------------------------------------------------


def test_an_origin_is_where_the_definition_stands():
    line = HERE.read_text().splitlines().index("def search(query: str, limit: int = 3) -> str:") + 1
    expected = Origin(__name__, "search", str(HERE), line)
    assert origin_of(search) == expected
    assert origin_of(functools.partial(wrapping(search), limit=1)) == expected
    assert expected.source == f"{__name__}:search"


def test_the_origin_of_a_class_and_of_an_object_is_the_class_s():
    place = later.Place
    lines = HERE.with_name("later.py").read_text().splitlines()
    found = origin_of(place)
    assert (found.module, found.qualname) == ("later", "Place")
    assert found.file == str(HERE.with_name("later.py"))
    # Python 3.13 counts the decorators in, as it does for functions.
    assert found.line in (lines.index("class Place:") + 1, lines.index("class Place:"))
    assert origin_of(Service()).qualname == "Service"


def test_code_without_a_file_has_a_name_all_the_same():
    scope: dict[str, Any] = {"__name__": "made"}
    exec("def tool(): ...", scope)
    assert origin_of(scope["tool"]) == Origin("made", "tool", None, 1)


@pytest.mark.parametrize(
    ("module", "qualname", "stated", "name"),
    [
        ("shop.tools", "search", None, "shop.tools.search"),
        ("shop", "Service.search", None, "shop.Service.search"),
        ("shop", "f.<locals>.g", "shop.g", "shop.g"),
        ("_shop", "f", "a-b_c.d", "a-b_c.d"),
    ],
)
def test_a_name_is_stated_or_the_place_of_the_code(module, qualname, stated, name):
    assert name_of(Origin(module, qualname, None, None), stated) == name


@pytest.mark.parametrize(
    ("module", "qualname"),
    [
        ("shop", "f.<locals>.g"),
        ("shop", "<lambda>"),
        ("_shop", "search"),
        ("shop", "_search"),
        ("shop", "Service.__call__"),
        ("shop", "größe"),
        ("__main__", "search"),
        ("shop", "s" * NAME_CHARS_MAX),
    ],
)
def test_a_place_that_makes_no_name_asks_for_one(module, qualname):
    with pytest.raises(SignatureUnsupported, match="name='search'") as caught:
        name_of(Origin(module, qualname, None, None), None)
    assert caught.value.facts == {"tool": f"{module}.{qualname}"}


@pytest.mark.parametrize("stated", ["", "a b", "a.", "1a", "a\n", "a" * (NAME_CHARS_MAX + 1)])
def test_a_stated_name_must_be_one(stated):
    with pytest.raises(SignatureUnsupported, match="a tool's name has at most"):
        name_of(Origin("m", "f", None, None), stated)


def test_the_rule_of_names_is_the_contract_s():
    rule: Any = contract_schema()["properties"]
    assert (rule["name"]["pattern"], rule["name"]["maxLength"]) == (NAME_PATTERN, NAME_CHARS_MAX)


PROGRAM = '''
from tallystick.signatures.document import document_of
from tallystick.signatures.target import origin_of
from tallystick.signatures.terms import Terms

def search():
    """Search."""

class Order(dict):
    pass

print(document_of(search, Terms())["name"], origin_of(search).source, origin_of(Order).module)
'''


@pytest.mark.parametrize(
    ("file", "arguments", "module"),
    [
        ("tools.py", ["tools.py"], "tools"),
        ("tools.py", ["-m", "tools"], "tools"),
        ("tools.py", ["-c", "import tools"], "tools"),
        ("shop/tools.py", ["-m", "shop.tools"], "shop.tools"),
        ("shop/__main__.py", ["-m", "shop"], "shop"),
    ],
)
def test_a_program_s_tools_have_the_names_that_an_import_gives_them(
    file, arguments, module, tmp_path
):
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(PROGRAM)
    ran = subprocess.run(
        [sys.executable, *arguments],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.stdout.split() == [f"{module}.search", f"{module}:search", module]


SPAWNING = """
import multiprocessing
from tallystick.signatures.target import origin_of

class Order:
    pass

def sources(_):
    return origin_of(sources).source, origin_of(Order).source

SOURCES = sources(None)

def seen_at_import(_):
    return SOURCES

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(*{SOURCES, *pool.map(sources, [0]), *pool.map(seen_at_import, [0])})
"""


@pytest.mark.parametrize("arguments", [["prog.py"], ["-m", "prog"]])
def test_a_spawned_process_has_the_names_of_its_parent(arguments, tmp_path):
    (tmp_path / "prog.py").write_text(SPAWNING)
    ran = subprocess.run(
        [sys.executable, *arguments],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.stdout.strip() == "('prog:sources', 'prog:Order')"
