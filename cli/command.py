"""Makes a command of an action: the shared options, the way to the service, the exit code.

The one place where an error becomes an exit code.
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import IntEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Final, NamedTuple, ParamSpec, cast
from urllib.parse import urlsplit

import typer

from cli.connection import Api, JsonObject, Place, connect
from cli.render import Output, View
from tallystick.errors import LocalRefusal, Outage, Refusal

if TYPE_CHECKING:
    import httpx

Given = ParamSpec("Given")


class ExitCode(IntEnum):
    """How a command ended. USAGE is Typer's own, INTERRUPTED the shell's: 128 + SIGINT."""

    DONE = 0
    REFUSED = 1
    USAGE = 2
    UNREACHABLE = 3
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Invocation:
    """One run of a command: where the service is, and how the answer is written."""

    output: Output
    place: Place
    transport: "httpx.AsyncBaseTransport | None"

    def connect(self) -> AbstractAsyncContextManager[Api]:
        """Open the way to the service, see `cli.connection.connect`."""
        return connect(self.place, transport=self.transport)

    def show(self, value: JsonObject, view: View) -> None:
        """Write the answer: `value` itself for a program, `view(value)` for a person."""
        self.output.show(value, view)


# An action answers nothing, or, where its answer can be a "no", its exit code.
Action = Callable[Concatenate[Invocation, Given], Coroutine[Any, Any, int | None] | int | None]


def _server(value: str | None) -> str | None:
    if value is None:
        return None
    try:
        parts = urlsplit(value)
        good = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise typer.BadParameter("This is no server's URL, such as https://registry.example.")
    return value


def _option(name: str, annotation: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


_JSON: Final = _option(
    "json",
    Annotated[bool, typer.Option("--json", help="Write one JSON value, for programs.")],
    default=False,
)
_HOME: Final = _option(
    "home",
    Annotated[
        Path | None,
        typer.Option(
            envvar="TALLYSTICK_HOME",
            file_okay=False,
            help="The folder with this machine's data and admin token.",
        ),
    ],
    default=None,
)
_URL: Final = _option(
    "url",
    Annotated[
        str | None,
        typer.Option(
            envvar="TALLYSTICK_URL",
            callback=_server,
            help="The server to talk to; without one, the service runs inside this command. "
            "TALLYSTICK_TOKEN says for whom: else, on this machine, for its admin.",
        ),
    ],
    default=None,
)

ANYWHERE: Final = (_URL, _HOME, _JSON)
ON_THIS_MACHINE: Final = (_HOME, _JSON)
NOWHERE: Final = (_JSON,)


def command(
    options: Sequence[inspect.Parameter] = ANYWHERE,
) -> Callable[[Action[Given]], Callable[..., None]]:
    """Make an action into what Typer registers: one with the shared `options` beside its own.

    An error of Tallystick's own is written to stderr and becomes the exit code; anything else is a
    defect, and comes out as it is.
    """

    def decorate(action: Action[Given]) -> Callable[..., None]:
        act = cast("Action[...]", action)

        @wraps(action)
        def run(context: typer.Context, **given: Any) -> None:  # noqa: ANN401 - Typer parsed them
            invocation = Invocation(
                output=Output(as_json=given.pop("json")),
                place=Place(url=given.pop("url", None), home=given.pop("home", None)),
                transport=context.obj,
            )
            try:
                answer = act(invocation, **given)
                code = asyncio.run(answer) if isinstance(answer, Coroutine) else answer
            except (Refusal, Outage, LocalRefusal) as error:
                invocation.output.fail(error)
                code = exit_code(error)
            raise typer.Exit(code or ExitCode.DONE)

        _, *own = inspect.signature(action, eval_str=True).parameters.values()
        parameters = [
            _option("context", typer.Context, inspect.Parameter.empty),
            *(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own),
            *options,
        ]
        run.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def exit_code(error: Refusal | Outage | LocalRefusal) -> ExitCode:
    """Return how a command ends that met `error`."""
    return ExitCode.UNREACHABLE if isinstance(error, Outage) else ExitCode.REFUSED


class ToolVersion(NamedTuple):
    """One version of a tool, as in `billing.send_invoice@1.0`."""

    name: str
    version: str


def tool_version(text: str) -> ToolVersion:
    """Read `NAME@VERSION`. Raises typer.BadParameter for another form."""
    name, at, version = text.partition("@")
    if not (name and at and version):
        raise typer.BadParameter(f"{text!r} is not of the form NAME@VERSION.")
    return ToolVersion(name, version)


ToolVersionArgument = Annotated[
    ToolVersion,
    typer.Argument(
        parser=tool_version,
        metavar="NAME@VERSION",
        help="One version of a tool, as in billing.send_invoice@1.0.",
    ),
]
ReasonOption = Annotated[str, typer.Option(help="Why. It is kept for ever.")]
