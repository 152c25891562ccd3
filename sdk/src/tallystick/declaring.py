"""`@contract`: declares a tool where it is defined, and holds it to what the lockfile accepts.

A tool without an entry is entered. One whose contract has changed is refused, at the import or at
its first call, before a deployed agent meets it. What is needed to compare two contracts, and to
tell the difference, is loaded only where they differ.
"""

import inspect
import os
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from types import FrameType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, Unpack, cast, get_args, overload

from tallystick import errors
from tallystick.canonical import Json
from tallystick.effect_class import EffectClass
from tallystick.lockfile.drift import Drift, drift_of
from tallystick.lockfile.entry import Entry, Level
from tallystick.lockfile.location import VARIABLE, lockfile_for
from tallystick.lockfile.storage import change, read, utc_now
from tallystick.signatures.document import document_of
from tallystick.signatures.naming import name_of
from tallystick.signatures.target import Origin, definition_of, origin_of
from tallystick.signatures.terms import ContractFields, Terms

if TYPE_CHECKING:
    from tallystick.tool_contract import Contract

Mode = Literal["eager", "lazy"]
T = TypeVar("T")


class ContractChangedWarning(UserWarning):
    """A contract has changed, and breaks no caller: `breaking_only` lets it pass."""


@dataclass(frozen=True, eq=False)
class Declaration:
    """What `@contract` says of one tool.

    Args:
        target: The function, method or class.
        terms: What the author states of it.
        origin: Where it is declared, which is where it is defined unless that is other code.
        name: The tool's name.
        lockfile: The lockfile that it is held to, an absolute path.
        mode: Whether it is checked at the import (`eager`) or at the first call (`lazy`).
        frozen: Whether the lockfile may not be written; None if the environment says so.
        breaking_only: Whether a change that breaks nobody only warns.
        module: The `__name__` of the module that declares it.
        execution: The run of that module; None if that cannot be told.
    """

    target: object
    terms: Terms
    origin: Origin
    name: str
    lockfile: Path
    mode: Mode
    frozen: bool | None
    breaking_only: bool
    module: str
    execution: object

    @cached_property
    def document(self) -> Mapping[str, Json]:
        """The code's contract document, without a version unless the author states one."""
        return document_of(self.target, self.terms)


class Options(ContractFields, total=False):
    """What `contract` is given beside the target, and explains."""

    name: str | None
    version: str | None
    effect_class: EffectClass | str
    capabilities: Iterable[str]
    injected: Iterable[str]
    mode: Mode
    breaking_only: bool
    frozen: bool | None
    lockfile: str | os.PathLike[str] | None


@overload
def contract(target: None = None, /, **options: Unpack[Options]) -> Callable[[T], T]: ...
@overload
def contract(target: T, /, **options: Unpack[Options]) -> T: ...
def contract(target: T | None = None, /, **options: Unpack[Options]) -> T | Callable[[T], T]:
    """Declare a function, a method or a class as a tool, and hold it to its accepted contract.

    Written as `@contract`, `@contract(...)` or `contract(existing, ...)`. Returns the target, as it
    is, so that a call costs nothing more; only in mode `lazy` it returns a function that checks the
    contract once, at its first call, and until it matches.

    Args:
        target: What is declared.
        **options: Any of these, and of the fields of a contract document (`ContractFields`):

            name: The tool's name; without it, the module and the qualified name.
            version: `major.minor.patch`; without it, the lockfile counts.
            effect_class: What a second call may do, an `EffectClass`; without it, `UNKNOWN`.
            capabilities: What a call may touch, each as `resource:action:scope`.
            injected: Parameters that are filled in at run time, and that no caller gives.
            mode: `eager` checks at the import, `lazy` at the first call of a function or method.
            breaking_only: Only warn (`ContractChangedWarning`) of what breaks no caller or reader.
            frozen: Never write the lockfile; without it, the variable `TALLYSTICK_FROZEN` decides,
                or else `CI`.
            lockfile: Its path, from the folder of the code; without it, see `lockfile_for`.

    Raises:
        ContractChanged: The contract is not the accepted one.
        InvalidContract: What is stated makes no contract.
        InvalidRequest: `mode` or `TALLYSTICK_FROZEN` has a value that is none of its own.
        LockfileEntryMissing: The lockfile has no entry, and is frozen.
        LockfileInvalid: The lockfile cannot be read.
        LockfileUnwritable: The lockfile has no entry, and cannot be written.
        NameTaken: Other code has declared this name.
        SignatureUnsupported: The signature has no contract, or cannot be checked in this mode.
    """
    unknown = sorted(options.keys() - Options.__optional_keys__)
    if unknown:
        raise TypeError(f"contract() got an unexpected keyword argument {unknown[0]!r}")
    mode = options.get("mode", "eager")
    if mode not in get_args(Mode):
        raise errors.InvalidRequest(f"mode is {mode!r}, and must be 'eager' or 'lazy'")

    def declare(tool: T) -> T:
        return cast("T", _declared(_declaration(tool, options)))

    return declare if target is None else declare(target)


def _declaration(tool: object, options: Options) -> Declaration:
    stated = ContractFields.__optional_keys__
    terms = Terms(
        name=options.get("name"),
        version=options.get("version"),
        effect_class=str(options.get("effect_class", EffectClass.UNKNOWN)),
        capabilities=tuple(options.get("capabilities", ())),
        injected=tuple(options.get("injected", ())),
        fields=cast("Any", {key: options[key] for key in options if key in stated}),
    )
    defined = origin_of(tool)
    origin, module = _declared_at(defined, definition_of(tool).__module__)
    return Declaration(
        target=tool,
        terms=terms,
        origin=origin,
        name=name_of(defined, terms.name),
        lockfile=_lockfile(options.get("lockfile"), origin),
        mode=options.get("mode", "eager"),
        frozen=options.get("frozen"),
        breaking_only=options.get("breaking_only", False),
        module=module,
        execution=_execution(module),
    )


def _declared_at(defined: Origin, module: str) -> tuple[Origin, str]:
    """Return where a tool is declared, and the `__name__` of the module that does it.

    That is where it is defined. But what `contract` is called for from elsewhere, such as a
    function of a library, is declared at that call: nobody has to import the library to see it.
    """
    _, caller = _outside()
    frame = caller
    while frame is not None and _name(frame) != module:
        frame = frame.f_back
    if caller is None or frame is not None:
        return defined, module
    code = _outside.__code__.replace(co_filename=caller.f_code.co_filename)
    place = origin_of(FunctionType(code, caller.f_globals))
    return replace(place, qualname=defined.qualname, line=caller.f_lineno), _name(caller)


def _outside() -> tuple[int, FrameType | None]:
    """Return whoever called into this package, and its level on the stack, as `warnings` counts."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and _name(frame).startswith("tallystick."):
        level, frame = level + 1, frame.f_back
    return level, frame


def _name(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _lockfile(stated: str | os.PathLike[str] | None, origin: Origin) -> Path:
    file, cwd = Path(origin.file or ""), Path.cwd()
    if stated is None:
        return _nearest(file.parent if origin.file else None, cwd, os.environ.get(VARIABLE))
    # From the current folder, a run elsewhere would find no entry, and accept anything. But what is
    # typed into a notebook has the name of a file that is not there.
    return (file.parent if file.is_file() else cwd) / stated


@cache  # the tools of a folder belong to one lockfile, and the way up to it is looked up once
def _nearest(folder: Path | None, cwd: Path, variable: str | None) -> Path:
    file = None if folder is None else str(folder / "any.py")
    return lockfile_for(file, environment={VARIABLE: variable or ""}, cwd=cwd)


# --- what is declared -----------------------------------------------------------------------------

_CHANGING: Final = threading.Lock()
_BY_NAME: Final[dict[str, Declaration]] = {}
_BY_TARGET: Final[dict[int, Declaration]] = {}
_COLLECTED: Final[list[list[Declaration]]] = []


@contextmanager
def collecting() -> Generator[list[Declaration]]:
    """Only collect declarations while it lasts: no lockfile is read or written, nothing is checked.

    It holds for the whole process, and yields a list that grows.
    """
    collected: list[Declaration] = []
    _COLLECTED.append(collected)
    try:
        yield collected
    finally:
        _COLLECTED.pop()


def _declared(declaration: Declaration) -> object:
    """Put a declaration on record, see to its check, and return what the code is to call."""
    is_lazy = declaration.mode == "lazy"
    # What has no contract, or cannot wait for its check, is refused before it is on record.
    guarded = _lazy(declaration) if is_lazy else declaration.target
    _ = is_lazy or declaration.document
    _record(declaration)
    if _COLLECTED:
        _COLLECTED[-1].append(declaration)
        return declaration.target
    if not is_lazy:
        _check(declaration)
    return guarded


def _record(declaration: Declaration) -> None:
    name, origin = declaration.name, declaration.origin
    with _CHANGING:
        former = _BY_NAME.get(name)
        if former is not None:
            if not _replaces(declaration, former):
                places = [f"{each.file}:{each.line}" for each in (former.origin, origin)]
                detail = f"{name} is declared at {' and again at '.join(places)}: name one of them"
                raise errors.NameTaken(f"{detail} otherwise, by name=", facts={"tool": name})
            if _BY_TARGET.get(id(_core(former.target))) is former:
                del _BY_TARGET[id(_core(former.target))]
        _BY_NAME[name] = declaration
        _BY_TARGET[id(_core(declaration.target))] = declaration


def _replaces(declaration: Declaration, former: Declaration) -> bool:
    """Tell whether one of the same name is the same tool, declared again, or is gone."""
    origin, was = declaration.origin, former.origin
    if former.execution is None:  # a script, which may be imported too, or the cell of a notebook
        is_there = origin.module == was.module or origin.file == was.file
        return is_there and origin.qualname == was.qualname
    is_gone = _execution(former.module) is not former.execution
    places = ((each.file, each.line, each.qualname) for each in (origin, was))
    return is_gone or next(places) == next(places)


def _execution(module: str) -> object:
    """Return what is another object after a reload.

    None for a script, which cannot be reloaded, and in a notebook, whose cells may run again.
    """
    return getattr(sys.modules.get(module), "__spec__", None)


def _core(target: object) -> object:
    """Return what a target is known by: what one gets from a class is made anew each time."""
    if isinstance(target, staticmethod | classmethod | MethodType):
        return cast("Any", target).__func__
    return target


def contract_of(target: object) -> "Contract":
    """Return the contract that a declared tool has by its code.

    Its version is the stated one, or the one that the lockfile has or would give it.

    Args:
        target: What was declared: itself, as a method of a class or an instance, or under
            decorators that use `functools.wraps`.

    Raises:
        InvalidContract: What is stated makes no contract.
        LockfileInvalid: The lockfile cannot be read.
        SignatureUnsupported: The signature has no contract.
        ToolNotDeclared: It was not declared.
    """
    from tallystick.tool_contract import Contract

    declaration = _declaration_of(target)
    with _named(declaration):
        return Contract.parse(dict(_drift(declaration).document or {}))


def _declaration_of(target: object) -> Declaration:
    found: object = target
    for _ in range(100):  # not for ever: some objects have any attribute that is asked for
        declaration = _BY_TARGET.get(id(_core(found)))
        if declaration is not None:
            return declaration
        found = getattr(found, "__wrapped__", None)
    described = getattr(target, "__qualname__", None) or f"a {type(target).__name__}"
    raise errors.ToolNotDeclared(f"{described} is not declared: put @contract on it")


# --- the check ------------------------------------------------------------------------------------


def _check(declaration: Declaration) -> None:
    """Hold a declaration to the lockfile, which gets an entry if it has none."""
    with _named(declaration):
        drift = _drift(declaration)
        if drift.level is Level.NEW:
            drift = drift_of(declaration.name, _enter(declaration, drift), declaration.document)
    if drift.level in (Level.UNCHANGED, Level.TEXT):
        return
    refusal = _refusal(declaration, drift)
    if not declaration.breaking_only or drift.level is Level.BREAKING:
        raise refusal
    warnings.warn(str(refusal), ContractChangedWarning, stacklevel=_outside()[0])


def _drift(declaration: Declaration) -> Drift:
    entry = read(declaration.lockfile).entries.get(declaration.name)
    return drift_of(declaration.name, entry, declaration.document)


@contextmanager
def _named(declaration: Declaration) -> Generator[None]:
    """Let a refusal of the contract's content say whose contract it is."""
    try:
        yield
    except errors.Refusal as error:
        detail = f"{declaration.name}: {error.detail}"
        raise type(error)(detail, pointer=error.pointer, facts=error.facts) from None


def _enter(declaration: Declaration, drift: Drift) -> Entry:
    """Enter a new tool; return its entry, which another process may have been the first to make."""
    name, path = declaration.name, declaration.lockfile
    if _is_frozen(declared=declaration.frozen):
        raise errors.LockfileEntryMissing(
            f"{path} has no entry for {name}, and may not be written here: where you develop, run"
            f" `tallystick accept {name}{_options(declaration, None)}`, and commit the file",
            facts={"tool": name, "lockfile": str(path)},
        )
    entry = Entry(dict(drift.document or {}), utc_now(), declaration.origin.source)
    lock = change(path, lambda lock: lock if name in lock.entries else lock.with_entry(entry))
    return lock.entries[name]


_FROZEN: Final = {"1": True, "true": True, "0": False, "false": False}


def _is_frozen(*, declared: bool | None) -> bool:
    if declared is not None:
        return declared
    stated = os.environ.get("TALLYSTICK_FROZEN", "").lower()
    if stated and stated not in _FROZEN:
        detail = f"TALLYSTICK_FROZEN is {stated!r}, and must be 1, 0, true or false"
        raise errors.InvalidRequest(detail)
    return _FROZEN.get(stated or os.environ.get("CI", "").lower(), False)


def _refusal(declaration: Declaration, drift: Drift) -> errors.ContractChanged:
    from tallystick.lockfile.wording import commands, headline, summary

    name, path = declaration.name, declaration.lockfile
    steps = commands(name, options=_options(declaration, drift.entry))
    if declaration.origin.module == "__main__":
        steps = [
            "No command can import a notebook. To accept it, take the entry out of",
            f"{path}.",
        ]
    lines = [*summary(drift), "", *steps]
    return errors.ContractChanged(
        headline(drift, path.name),
        report="\n".join(f"  {line}".rstrip() for line in lines),
        facts={"tool": name, "level": drift.level.value, "lockfile": str(path)},
    )


def _options(declaration: Declaration, entry: Entry | None) -> str:
    """Return what a command has to be told, beside the name, to find the tool from here."""
    import shlex

    options: list[str] = []
    cwd, path, module = Path.cwd(), declaration.lockfile, declaration.origin.module
    if path != lockfile_for(None, environment=os.environ, cwd=cwd):
        options += ["--lockfile", str(path.relative_to(cwd) if path.is_relative_to(cwd) else path)]
    if entry is None or entry.source is None or entry.source.partition(":")[0] != module:
        options += ["-m", module]
    return "".join(f" {shlex.quote(each)}" for each in options)


# --- mode "lazy" ----------------------------------------------------------------------------------


def _lazy(declaration: Declaration) -> object:
    """Return the target with the check before its first call."""
    from tallystick.lockfile.first_call import checked_first

    target: Any = declaration.target
    function = _core(target)
    if not isinstance(function, FunctionType) or isinstance(target, MethodType):
        raise errors.SignatureUnsupported(
            f"{declaration.name}: mode 'lazy' is for functions and methods; leave it out here, and"
            " the check runs at the import",
            facts={"tool": declaration.name},
        )
    checked = checked_first(function, lambda: _check(declaration))
    return checked if function is target else type(target)(checked)
