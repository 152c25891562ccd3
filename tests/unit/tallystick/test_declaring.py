"""A declared tool is held to its accepted contract, before anyone calls it as it is no more."""

import asyncio
import functools
import importlib
import inspect
import pickle
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier
from types import ModuleType
from typing import Any, assert_type
from unittest import mock

import pytest

from tallystick.declaring import ContractChangedWarning, collecting, contract, contract_of
from tallystick.errors import (
    ContractChanged,
    InvalidContract,
    InvalidRequest,
    LockfileEntryMissing,
    LockfileInvalid,
    NameTaken,
    SignatureUnsupported,
    ToolNotDeclared,
)
from tallystick.lockfile.storage import change, read

SEARCH = '''
from tallystick.declaring import contract

@contract
def search(query: str, limit: int = 10) -> list[str]:
    """Search the catalogue."""
    return [query] * limit
'''
RENAMED = SEARCH.replace("query: str", "search_query: str").replace("[query]", "[search_query]")
TEXT = SEARCH.replace("the catalogue", "everything")
WIDER = SEARCH.replace("limit: int = 10", "limit: int = 10, offset: int | None = None")
DEFAULT = SEARCH.replace("= 10", "= 20")


class Project:
    """A folder with code in it, each version of which is imported afresh."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lockfile = root / "tallystick.lock"
        self.imported: set[str] = set()

    def write(self, code: str, module: str = "tools") -> Path:
        path = self.root.joinpath(*module.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(code), encoding="utf-8")
        return path

    def run(self, code: str, module: str = "tools") -> ModuleType:
        """Write a module and import it, as a new process would."""
        self.write(code, module)
        sys.modules.pop(module, None)
        importlib.invalidate_caches()
        self.imported.add(module)
        return importlib.import_module(module)

    def accept(self) -> None:
        """Forget what was accepted, so that the next import enters it."""
        self.lockfile.unlink()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """Return an empty project in the current folder."""
    for name in ("CI", "TALLYSTICK_FROZEN", "TALLYSTICK_LOCKFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # files change within a second
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    tmp_path.joinpath("pyproject.toml").touch()
    made = Project(tmp_path)
    yield made
    for module in made.imported:
        sys.modules.pop(module, None)


# --- at the import --------------------------------------------------------------------------------


def test_a_new_tool_is_entered_and_then_only_compared(project):
    project.run(SEARCH)
    entry = read(project.lockfile).entries["tools.search"]
    assert (entry.version, entry.source) == ("1.0.0", "tools:search")
    before = project.lockfile.read_bytes(), project.lockfile.stat().st_mtime_ns
    assert project.run(SEARCH).search("a", 2) == ["a", "a"]
    assert (project.lockfile.read_bytes(), project.lockfile.stat().st_mtime_ns) == before


def test_a_renamed_parameter_is_refused_in_words(project):
    project.run(SEARCH)
    before = project.lockfile.read_bytes()
    with pytest.raises(ContractChanged) as refused:
        project.run(RENAMED)
    assert str(refused.value).splitlines() == [
        "tools.search is not what tallystick.lock accepts: it breaks callers.",
        "",
        "  input/query  renamed to search_query  breaks old calls",
        "",
        "  A call that worked and fails now:",
        '    tools.search {"query": ""}',
        "    /query: this property is not declared",
        "    /search_query: this property is required",
        "",
        "  A new major version: 1.0.0 -> 2.0.0",
        "",
        "  See all of it:  tallystick diff tools.search",
        "  Accept it:      tallystick accept tools.search",
    ]
    assert refused.value.facts["level"] == "breaking"
    assert project.lockfile.read_bytes() == before


@pytest.mark.parametrize("code", [TEXT, SEARCH.replace("@contract", "@contract(version='1.0.1')")])
def test_text_and_a_version_are_no_change_of_the_contract(project, code):
    project.run(SEARCH)
    before = project.lockfile.read_bytes()
    project.run(code)
    assert project.lockfile.read_bytes() == before


@pytest.mark.parametrize(("code", "level"), [(WIDER, "compatible"), (DEFAULT, "review")])
def test_what_breaks_nobody_is_refused_too_unless_only_breaks_are_to_be(project, code, level):
    project.run(SEARCH)
    with pytest.raises(ContractChanged) as refused:
        project.run(code)
    assert refused.value.facts["level"] == level
    lenient = code.replace("@contract", "@contract(breaking_only=True)")
    with pytest.warns(ContractChangedWarning, match=r"tools\.search is not what") as warned:
        module = project.run(lenient)
    assert module.search("a", 1) == ["a"]
    line = 1 + lenient.splitlines().index("@contract(breaking_only=True)")
    assert [(each.filename, each.lineno) for each in warned] == [(module.__file__, line)]


def test_a_break_is_refused_even_where_only_breaks_are(project):
    project.run(SEARCH)
    with pytest.raises(ContractChanged):
        project.run(RENAMED.replace("@contract", "@contract(breaking_only=True)"))


def test_a_contract_that_is_none_is_refused_with_the_name_of_its_tool(project):
    with pytest.raises(InvalidContract, match=r"tools\.search: "):
        project.run(SEARCH.replace("@contract", "@contract(capabilities=['shop'])"))
    assert not project.lockfile.exists()


def test_a_damaged_lockfile_stays_as_it_is(project):
    project.lockfile.write_text("{")
    with pytest.raises(LockfileInvalid):
        project.run(SEARCH)
    assert project.lockfile.read_text() == "{"


def test_an_import_that_finds_nothing_changed_loads_nothing_heavy(project):
    project.run(SEARCH)
    heavy = "httpx", "jsonschema_rs", "filelock", "tallystick.compatibility", "tallystick.schema"
    code = f"import sys, tools; print([each for each in {heavy} if each in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project.root,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


# --- frozen ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "argument", "is_frozen"),
    [
        ({}, "None", False),
        ({"CI": "true"}, "None", True),
        ({"CI": "1"}, "None", True),
        ({"CI": "false"}, "None", False),
        ({"CI": "true", "TALLYSTICK_FROZEN": "0"}, "None", False),
        ({"TALLYSTICK_FROZEN": "True"}, "None", True),
        ({"TALLYSTICK_FROZEN": ""}, "None", False),
        ({"TALLYSTICK_FROZEN": "1"}, "False", False),
        ({}, "True", True),
    ],
)
def test_a_frozen_lockfile_is_never_made(project, monkeypatch, environment, argument, is_frozen):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    code = SEARCH.replace("@contract", f"@contract(frozen={argument})")
    if is_frozen:
        with pytest.raises(
            LockfileEntryMissing, match=r"`tallystick accept tools\.search -m tools`"
        ):
            project.run(code)
    else:
        project.run(code)
    assert project.lockfile.exists() is not is_frozen


def test_a_frozen_lockfile_still_compares(project, monkeypatch):
    project.run(SEARCH)
    monkeypatch.setenv("CI", "true")
    project.run(SEARCH)
    with pytest.raises(ContractChanged):
        project.run(RENAMED)


def test_a_word_for_frozen_that_is_none_is_refused(project, monkeypatch):
    monkeypatch.setenv("TALLYSTICK_FROZEN", "maybe")
    with pytest.raises(InvalidRequest, match="TALLYSTICK_FROZEN is 'maybe'"):
        project.run(SEARCH)


# --- which lockfile -------------------------------------------------------------------------------


def test_a_stated_lockfile_stands_beside_the_code_wherever_it_runs(project, monkeypatch):
    code = SEARCH.replace("@contract", "@contract(lockfile='shop.lock')")
    project.root.joinpath("elsewhere").mkdir()
    monkeypatch.chdir(project.root / "elsewhere")
    project.run(code, "shop.tools")
    assert [*read(project.root / "shop" / "shop.lock").entries] == ["shop.tools.search"]
    with pytest.raises(ContractChanged) as refused:
        project.run(code.replace("query: str", "text: str").replace("[query]", "[]"), "shop.tools")
    stated = f"--lockfile {project.root / 'shop' / 'shop.lock'}"
    assert f"tallystick accept shop.tools.search {stated}" in str(refused.value)


def test_the_environment_names_a_lockfile(project, monkeypatch):
    monkeypatch.setenv("TALLYSTICK_LOCKFILE", str(project.root / "other.lock"))
    project.run(SEARCH)
    assert [*read(project.root / "other.lock").entries] == ["tools.search"]
    assert not project.lockfile.exists()


def test_the_commands_are_told_where_code_has_moved(project):
    named = "@contract(name='moved')"
    project.run(SEARCH.replace("@contract", named), "before")
    del sys.modules["before"]  # what it declared is gone with it
    with pytest.raises(ContractChanged) as refused:
        project.run(RENAMED.replace("@contract", named), "after")
    assert "tallystick accept moved -m after" in str(refused.value)


def test_a_function_of_a_library_is_declared_where_that_is_said(project):
    project.run(
        "import shutil\nfrom tallystick.declaring import contract\n\n"
        "contract(shutil.which, name='sys.which', description='Find a program.')\n"
    )
    assert read(project.lockfile).entries["sys.which"].source == "tools:which"
    with collecting() as declared:
        project.run(
            "import shutil\nfrom tallystick.declaring import contract\n\n"
            "for each in (shutil.which,):\n"
            "    contract(each, name='sys.which', description='Find a program.')\n"
        )
    origin = declared[0].origin
    assert (origin.file, origin.line) == (str(project.root / "tools.py"), 5)


def test_a_decorator_of_ones_own_may_stand_between(project):
    project.run(
        """
        from tallystick.declaring import contract

        def tool(function):
            return contract(function, effect_class="PURE")
        """,
        "house.decorators",
    )
    code = SEARCH.replace("tallystick.declaring import contract", "house.decorators import tool")
    project.run(code.replace("@contract", "@tool"))
    assert read(project.lockfile).entries["tools.search"].source == "tools:search"


# --- what is returned -----------------------------------------------------------------------------


@pytest.fixture
def apart(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what this file declares itself out of the lockfile that is nearest to it."""
    monkeypatch.setenv("TALLYSTICK_LOCKFILE", str(project.lockfile))


def test_the_target_is_returned_as_it_is(apart):
    def search(query: str) -> str:
        """Search."""
        return query

    @dataclass
    class Order:
        """An order."""

        sku: str

    for target in (search, functools.partial(search), staticmethod(search), Order):
        name = f"returned.{type(target).__name__}"
        assert contract(target, name=name) is target
        assert contract(name=name)(target) is target


def test_type_checkers_see_the_type_of_the_target(apart):
    def search(query: str) -> int:
        """Search."""
        return len(query)

    plain = contract(search, name="plain")
    stated = contract(name="stated", effect_class="PURE", title="Search")(search)
    lazy = contract(search, name="lazy", mode="lazy")
    for each in (plain, stated, lazy):
        # By its name too, which no `Callable` would know.
        assert assert_type(each(query="abc"), int) == 3

    @dataclass
    class Order:
        """An order."""

        sku: str

    assert assert_type(contract(Order, name="typed"), type[Order]) is Order


def test_a_word_that_is_no_option_is_refused_as_python_does(project):
    options: dict[str, Any] = {"effect_clas": "PURE"}
    with pytest.raises(TypeError, match="unexpected keyword argument 'effect_clas'"):
        contract(**options)
    options = {"mode": "later"}
    with pytest.raises(InvalidRequest, match="mode is 'later'"):
        contract(**options)


# --- lazy -----------------------------------------------------------------------------------------

LAZY = '''
from tallystick.declaring import contract

@contract(mode="lazy")
def call(query: str) -> str:
    """Call."""
    return query

@contract(mode="lazy")
async def wait(query: str) -> str:
    """Wait."""
    return query

@contract(mode="lazy")
def items(query: str):
    """Give items."""
    sent = yield query
    yield sent
    return "end"

@contract(mode="lazy")
async def stream(query: str):
    """Give items."""
    try:
        sent = yield query
        yield sent
    except KeyError:
        yield "caught"
    finally:
        stream.closed = True

class Shop:
    @contract(mode="lazy")
    def method(self, query: str) -> str:
        """Call a method."""
        return query

    @contract(mode="lazy")
    @staticmethod
    def fixed(query: str) -> str:
        """Call it."""
        return query

    @contract(mode="lazy")
    @classmethod
    def of(cls, query: str) -> str:
        """Make one."""
        return cls.__name__ + query
'''


async def collected(stream: Any) -> list[object]:
    return [each async for each in stream]


CALLS: dict[str, Callable[[ModuleType], object]] = {
    "tools.call": lambda tools: tools.call("a"),
    "tools.wait": lambda tools: asyncio.run(tools.wait("a")),
    "tools.items": lambda tools: [*tools.items("a")],
    "tools.stream": lambda tools: asyncio.run(collected(tools.stream("a"))),
    "tools.Shop.method": lambda tools: tools.Shop().method("a"),
    "tools.Shop.fixed": lambda tools: tools.Shop.fixed("a"),
    "tools.Shop.of": lambda tools: tools.Shop.of("a"),
}
ANSWERS = {"tools.items": ["a", None], "tools.stream": ["a", None], "tools.Shop.of": "Shopa"}


@pytest.mark.parametrize("name", CALLS)
def test_a_lazy_tool_is_checked_at_its_first_call(project, name):
    tools = project.run(LAZY)
    assert not project.lockfile.exists()
    assert CALLS[name](tools) == ANSWERS.get(name, "a")
    assert [*read(project.lockfile).entries] == [name]
    project.lockfile.write_text("{")  # the check has passed, and does not run again
    assert CALLS[name](tools) == ANSWERS.get(name, "a")


@pytest.mark.parametrize("name", CALLS)
def test_a_lazy_tool_is_refused_at_each_call_until_it_is_accepted(project, name):
    CALLS[name](project.run(LAZY))
    changed = LAZY.replace("query: str", "text: str").replace("query", "text")
    tools = project.run(changed)
    for _ in range(2):
        with pytest.raises(ContractChanged, match=name):
            CALLS[name](tools)
    project.accept()
    assert CALLS[name](tools) == ANSWERS.get(name, "a")


def test_a_lazy_tool_is_of_the_same_kind(project):
    tools = project.run(LAZY)
    assert inspect.iscoroutinefunction(tools.wait)
    assert inspect.isgeneratorfunction(tools.items)
    assert inspect.isasyncgenfunction(tools.stream)
    assert isinstance(inspect.getattr_static(tools.Shop, "fixed"), staticmethod)
    assert str(inspect.signature(tools.call)) == "(query: str) -> str"
    assert tools.call.__doc__ == "Call."
    assert pickle.loads(pickle.dumps(tools.call)) is tools.call


def test_a_lazy_generator_takes_what_is_sent_and_thrown(project):
    tools = project.run(LAZY)
    items = tools.items("a")
    assert (next(items), items.send("b")) == ("a", "b")
    with pytest.raises(StopIteration, match="end"):
        next(items)

    async def converse() -> list[object]:
        sent = tools.stream("a")
        told: list[object] = [await anext(sent), await sent.asend("b")]
        thrown = tools.stream("a")
        told += [await anext(thrown), await thrown.athrow(KeyError())]
        await thrown.aclose()
        return told

    assert asyncio.run(converse()) == ["a", "b", "a", "caught"]


def test_a_stream_that_is_left_is_closed_at_once(project):
    tools = project.run(LAZY)

    async def leave() -> bool:
        stream = tools.stream("a")
        await anext(stream)
        await stream.aclose()
        return tools.stream.closed

    assert asyncio.run(leave())


def test_a_lazy_check_runs_once_whichever_thread_is_first(project):
    project.run(SEARCH)
    lazy = WIDER.replace("@contract", "@contract(mode='lazy', breaking_only=True)")
    tools, together = project.run(lazy), Barrier(8)

    def call(_: int) -> list[str]:
        together.wait()
        return tools.search("a", 1)

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with ThreadPoolExecutor(8) as threads:
            assert [*threads.map(call, range(8))] == [["a"]] * 8
    assert [(each.category, each.filename) for each in warned] == [
        (ContractChangedWarning, __file__)
    ]


def test_only_functions_can_wait_for_their_check(apart):
    class Order:
        """An order."""

    for target in (Order, functools.partial(contract, None), Project(Path()).run):
        with pytest.raises(SignatureUnsupported, match="mode 'lazy' is for functions"):
            contract(target, name="order", mode="lazy")


# --- one name, one tool ---------------------------------------------------------------------------


def test_two_modules_cannot_declare_one_name(project):
    named = SEARCH.replace("@contract", "@contract(name='search')")
    project.run(named, "first")
    with pytest.raises(NameTaken, match=r"first\.py:4 and again at .*second\.py:4"):
        project.run(named, "second")


def test_two_functions_of_one_name_in_a_module_are_two_tools(project):
    with pytest.raises(NameTaken, match=r"tools\.py:4 and again at .*tools\.py:9"):
        project.run(SEARCH + SEARCH.partition("contract\n")[2])


def test_a_reload_declares_the_same_tool_again(project):
    module = project.run(SEARCH)
    project.write("# moved by a line\n" + SEARCH)
    importlib.reload(module)
    assert contract_of(module.search).name == "tools.search"


def test_a_cell_of_a_notebook_may_run_again(project):
    namespace: dict[str, Any] = {"__name__": "cells"}
    for cell in (SEARCH, "\n\n" + SEARCH):
        exec(compile(cell, f"<cell {len(cell)}>", "exec"), namespace)
    assert contract_of(namespace["search"]).name == "cells.search"


def test_a_function_that_is_made_twice_is_one_tool(apart):
    def application() -> Callable[[str], str]:
        @contract(name="made.twice")
        def search(query: str) -> str:
            """Search."""
            return query

        return search

    first, second = application(), application()
    assert contract_of(second).name == "made.twice"
    with pytest.raises(ToolNotDeclared):
        contract_of(first)


# --- contract_of ----------------------------------------------------------------------------------

METHODS = '''
import functools
from tallystick.declaring import contract

class Shop:
    @contract
    def search(self, query: str) -> str:
        """Search."""
        return query

    @contract
    @staticmethod
    def find(query: str) -> str:
        """Find."""
        return query

    @staticmethod
    @contract
    def seek(query: str) -> str:
        """Seek."""
        return query

    @contract
    @classmethod
    def look(cls, query: str) -> str:
        """Look."""
        return query

@contract(mode="lazy")
def late(query: str) -> str:
    """Be late."""
    return query

@functools.wraps(late)
def traced(*args, **kwargs):
    return late(*args, **kwargs)
'''


def test_the_contract_of_a_tool_is_found_however_it_is_held(project):
    tools = project.run(METHODS)
    shop = tools.Shop
    for held in (shop.search, shop().search, shop.find, shop().find, shop.seek, shop.look):
        found = contract_of(held)
        assert found.name == f"tools.Shop.{held.__name__}"
        assert found.input_schema["required"] == ["query"]
        assert held(*([shop()] if held is shop.search else []), "a") == "a"
    assert contract_of(tools.late) == contract_of(tools.traced)


def test_what_was_not_declared_has_no_contract(project):
    for target in (len, Project, 3, None, mock.call):
        with pytest.raises(ToolNotDeclared, match="is not declared: put @contract on it"):
            contract_of(target)


def test_the_version_is_stated_or_counted_by_the_lockfile(project):
    with collecting():
        assert str(contract_of(project.run(SEARCH).search).version) == "1.0.0"
    project.run(SEARCH)
    with collecting():
        for code, version in ((SEARCH, "1.0.0"), (TEXT, "1.0.1"), (WIDER, "1.1.0")):
            assert str(contract_of(project.run(code).search).version) == version
        stated = project.run(SEARCH.replace("@contract", "@contract(version='3.1')"))
    assert str(contract_of(stated.search).version) == "3.1.0"


# --- collecting -----------------------------------------------------------------------------------


def test_collecting_touches_no_lockfile(project):
    project.lockfile.write_text("{")
    with collecting() as declared:
        tools = project.run(LAZY)
        assert tools.call("a") == "a"
    assert [each.name for each in declared] == [*CALLS]
    assert declared[0].lockfile == project.lockfile
    assert declared[0].document["name"] == "tools.call"
    assert project.lockfile.read_text() == "{"
    assert sorted(each.name for each in project.root.iterdir()) == [
        "pyproject.toml",
        "tallystick.lock",
        "tools.py",
    ]


def test_another_process_may_be_the_first_to_enter_a_tool(project, monkeypatch):
    """What was entered between the look and the writing is not overwritten, but compared."""
    with collecting():
        late = project.run(RENAMED.replace("@contract", "@contract(mode='lazy')"))
    project.run(SEARCH)
    theirs = read(project.lockfile).entries["tools.search"]
    change(project.lockfile, lambda lock: lock.without("tools.search"))
    tools = project.run(RENAMED.replace("@contract", "@contract(mode='lazy')"))
    change(project.lockfile, lambda lock: lock.with_entry(theirs))
    with pytest.raises(ContractChanged):
        tools.search("a")
    assert late is not tools
