"""One performance of the demo: the services start, the chapters are told, everything is stopped."""

import asyncio
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import FrameType

import httpx
from rich.console import Console

from cli.connection import Api, JsonObject
from cli.demo.books import Line
from cli.demo.chapters import CHAPTERS, Chapter
from cli.demo.checks import Checks
from cli.demo.processes import Services
from cli.demo.stage import Stage
from cli.demo.story import Story
from tallystick import AsyncClient
from tallystick.errors import TallystickError


def perform(*, json_output: bool, keep: bool) -> int:
    """Perform the demo; see `cli.demo.run`."""
    begun = time.monotonic()
    console = Console(quiet=json_output)
    story = Story(console, Checks())
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    with Services() as services:
        with console.status("Starting PostgreSQL, the server, the reconciler and a provider ..."):
            services.start()
        story.opening(
            "Everything here is real: a PostgreSQL of its own, the server "
            f"({services.url}), the reconciler, and a billing provider ({services.provider_url}) "
            "that keeps books of its own are processes on this machine."
        )
        lines = asyncio.run(_on_stage(services, story))
        services.kept = keep
    seconds = time.monotonic() - begun
    if json_output:
        _write_json(story.checks, lines, seconds, services)
    else:
        _sum_up(story, seconds, services)
    return story.checks.exit_code


async def conduct(stage: Stage, chapters: Sequence[Chapter]) -> None:
    """Tell the chapters in order.

    An answer that a chapter did not reckon with is a check that failed, and ends the story.
    """
    for chapter in chapters:
        try:
            await chapter(stage)
        except (TallystickError, httpx.HTTPError, TimeoutError) as error:
            told = f"{type(error).__name__}: {error}"
            stage.check("the chapter comes to its end", ok=False, answer=told)
            return


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Take a signal that ends the process as Ctrl-C, so that everything is stopped first."""
    signal.raise_signal(signal.SIGINT)


async def _on_stage(services: Services, story: Story) -> list[Line]:
    token = services.token
    async with (
        # These transports know no proxy: everything here is on the loopback.
        httpx.AsyncClient(
            base_url=services.url, headers={"Authorization": f"Bearer {token}"}, trust_env=False
        ) as http,
        httpx.AsyncClient(base_url=services.provider_url, trust_env=False) as provider,
        AsyncClient(services.url, token, transport=httpx.AsyncHTTPTransport()) as client,
    ):
        stage = Stage(story, services, Api(http), client, provider)
        await conduct(stage, CHAPTERS)
    return stage.lines


def _sum_up(story: Story, seconds: float, services: Services) -> None:
    checks = story.checks
    held = len(checks.done) - checks.failed
    story.verdict(
        f"{held} of {len(checks.done)} checks held, in {seconds:.0f} seconds.", ok=checks.ok
    )
    if not services.kept:
        story.tell("Everything is stopped and removed; `registry demo --keep` leaves it running.")
        return
    registry = "registry" if shutil.which("registry") else _registry_here()
    story.tell("Everything still runs. Try next:")
    story.lines(
        f"export TALLYSTICK_URL={services.url}",
        f"export TALLYSTICK_HOME={services.home}",
        f"{registry} list",
        f"{registry} effects list --all",
        f"curl {services.provider_url}/books",
        f"curl {services.url}/docs      # or better, open it in a browser",
    )
    story.tell("And to stop and remove it all:")
    story.lines(
        f"kill {' '.join(map(str, services.pids))}; sleep 5; rm -r {services.home}",
    )


def _registry_here() -> str:
    """Return the command beside this Python, as one would type it here."""
    return os.path.relpath(Path(sys.executable).with_name("registry"))


def _write_json(checks: Checks, lines: list[Line], seconds: float, services: Services) -> None:
    kept: JsonObject = {
        "url": services.url,
        "home": str(services.home),
        "provider_url": services.provider_url,
        "pids": services.pids,
    }
    told: JsonObject = {
        "ok": checks.ok,
        "seconds": round(seconds, 1),
        "failed": checks.failed,
        "checks": [asdict(check) for check in checks.done],
        "books": [asdict(line) | {"ok": line.ok} for line in lines],
        "kept": kept if services.kept else None,
    }
    sys.stdout.write(json.dumps(told, indent=2) + "\n")
