"""A conversation with the registry: ask, and ask again while that can help.

Pure: a script is a generator that yields the requests it wants sent and is told what was heard, and
when. Whoever drives it does the sending and the waiting, blocking or not (`tallystick._wire`), so
that there is one implementation and two shells.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeAlias, TypeVar

from tallystick._answers import Answer, RunTrace, is_passing, read_document, read_trace
from tallystick._requests import Document, Request, run_request
from tallystick.canonical import Json
from tallystick.errors import RegistryUnavailable

T = TypeVar("T")

PAUSE_SECONDS: Final = 0.1
PAUSE_SECONDS_MAX: Final = 2.0


@dataclass(frozen=True, slots=True)
class Setting:
    """How long the client waits, and where its time and chance come from.

    Attributes:
        url: The registry, as error messages name it.
        timeout_seconds: For each of connecting, writing and reading.
        retry_seconds: How long a request is asked again.
        clock: A monotonic clock, in seconds.
        random: Draws from [0, 1), for jitter.
    """

    url: str
    timeout_seconds: float
    retry_seconds: float
    clock: Callable[[], float]
    random: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Step:
    """What a script wants done: a pause, then a request."""

    request: Request
    pause_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of a step: an answer, or the fault of the transport that lost it."""

    sent_at: float
    heard_at: float
    answer: Answer | None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """The value that a script ended with."""

    value: T


Script: TypeAlias = Generator[Step, Heard, T]


@dataclass(frozen=True, slots=True)
class Reply:
    """A good answer, and when the request that brought it was sent."""

    sent_at: float
    document: Document


def advance(script: Script[T], heard: Heard | None) -> Step | Done[T]:
    """Start a script (with None) or tell it what was heard; return what it wants next."""
    try:
        return next(script) if heard is None else script.send(heard)
    except StopIteration as stop:
        return Done(stop.value)


def converse(request: Request, setting: Setting) -> Script[Reply]:
    """Ask until there is an answer or the time for asking is over.

    Raises:
        Refusal: What the service answered, by its code.
        RegistryUnavailable: No answer of the registry came in time.
    """
    heard = yield Step(request)
    deadline = heard.sent_at + setting.retry_seconds
    ceiling = PAUSE_SECONDS
    while True:
        pause = max(ceiling * setting.random(), _asked_pause(heard.answer))
        hopeless = heard.answer is not None and not is_passing(heard.answer)
        if hopeless or heard.heard_at + pause >= deadline:
            break
        heard = yield Step(request, pause)
        ceiling = min(2 * ceiling, PAUSE_SECONDS_MAX)
    if heard.answer is None:
        raise RegistryUnavailable(
            f"{request.method} {request.path} got no answer from {setting.url} "
            f"within {setting.retry_seconds:g} s ({heard.fault})."
        )
    return Reply(heard.sent_at, read_document(request, heard.answer))


def read_run(run: str, setting: Setting) -> Script[RunTrace]:
    """Ask for every page of a run's trace. Raises as `converse` does."""
    entries: tuple[Mapping[str, Json], ...] = ()
    after: str | None = None
    while True:
        reply = yield from converse(run_request(run, after), setting)
        trace, after = read_trace(reply.document)
        entries += trace.entries
        if after is None:
            return replace(trace, entries=entries)


def _asked_pause(answer: Answer | None) -> float:
    """Return what ``Retry-After`` asks for in seconds (RFC 9110, 10.2.3); a date counts as none."""
    asked = answer.retry_after if answer is not None else ""
    return float(asked) if asked.isascii() and asked.isdigit() else 0.0
