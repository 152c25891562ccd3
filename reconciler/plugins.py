"""Asks a provider through a plug-in: a Python callable that is installed beside the service."""

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from ledger.evidence import Answer
from ledger.judgement import Judgement
from reconciler.lanes import PLACE_MAX
from tallystick.evidence_source import EvidenceAnswer, EvidenceQuestion
from tallystick.plain import plain
from tallystick.provider import PluginEvidence

_log = logging.getLogger("tallystick.reconciler")

GROUP: Final = "tallystick.evidence_sources"
UNANSWERED_MAX: Final = PLACE_MAX
"""How many questions one plug-in may have that it has not answered."""
_TEXT_MAX: Final = 200


class Plugins:
    """The plug-ins of this process, by name. Each is loaded when it is first asked."""

    def __init__(self, installed: Mapping[str, EntryPoint]) -> None:
        self._installed = installed
        self._unanswered = Counter[str]()

    @classmethod
    def installed(cls) -> "Plugins":
        """Return those that are installed."""
        return cls({one.name: one for one in entry_points(group=GROUP)})

    async def ask(self, plugin: PluginEvidence, question: EvidenceQuestion) -> Judgement:
        """Ask once. A plug-in that is missing, fails or takes too long is `unavailable`."""
        entry = self._installed.get(plugin.name)
        if entry is None:
            return Judgement(Answer.UNAVAILABLE, f"no plug-in {plugin.name!r} is installed")
        if self._unanswered[plugin.name] >= UNANSWERED_MAX:
            return Judgement(Answer.UNAVAILABLE, "the plug-in is still at earlier questions")
        try:
            async with asyncio.timeout(plugin.timeout_seconds):
                return await self._called(entry, question)
        except TimeoutError:
            return Judgement(Answer.UNAVAILABLE, "the plug-in did not answer in time")

    async def _called(self, entry: EntryPoint, question: EvidenceQuestion) -> Judgement:
        """Call it in a thread that nobody waits for longer than is allowed, not even the exit."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Judgement] = loop.create_future()

        def call() -> None:
            judgement = _judgement(entry, question)
            with suppress(RuntimeError):  # the loop has ended, and who waits with it
                loop.call_soon_threadsafe(answer, judgement)

        def answer(judgement: Judgement) -> None:
            self._unanswered[entry.name] -= 1
            if not answered.done():
                answered.set_result(judgement)

        self._unanswered[entry.name] += 1
        threading.Thread(target=call, name=f"plug-in {entry.name}", daemon=True).start()
        return await answered


def _judgement(entry: EntryPoint, question: EvidenceQuestion) -> Judgement:
    try:
        told = entry.load()(question)
        if not isinstance(told, EvidenceAnswer):
            return Judgement(Answer.UNAVAILABLE, "the plug-in's answer is none")
        reference = told.provider_reference
        return Judgement(
            Answer(told.answer),
            plain(str(told.detail))[:_TEXT_MAX] or f"the plug-in says {told.answer}",
            plain(str(reference))[:_TEXT_MAX] if reference is not None else None,
        )
    except BaseException as fault:  # noqa: BLE001 - whatever it raises says nothing of the effect
        # Only the name: what a plug-in puts into a message may be an argument or a secret.
        _log.warning("the plug-in %s failed: %s", entry.name, type(fault).__name__)
        return Judgement(Answer.UNAVAILABLE, f"the plug-in failed: {type(fault).__name__}")
