"""Callers: they plan, dispatch, send and report, and write down what the registry acknowledged."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final, NamedTuple
from uuid import uuid4

import httpx

from cli.demo.provider.__main__ import listening, server_of
from cli.demo.provider.faults import Plan

THREADS: Final = 8
LEASE_SECONDS: Final = 300
"""So long that no lease ends within the test."""
PATIENCE_SECONDS: Final = 120.0
REQUEST_SECONDS_MAX: Final = 10.0
AGAIN_SECONDS: Final = 0.1
KINDS: Final = {
    "IDEMPOTENT": "invoices",
    "NON_RETRYABLE": "transfers",
    "REPLAYABLE": "messages",
    "UNKNOWN": "notes",
}
"""What is booked at the provider by an effect of each class."""


class Acknowledged(NamedTuple):
    """What the registry said is so: the state of an effect, and the fence that it has by it."""

    effect_id: str
    fence: int
    state: str


class NoAnswerError(Exception):
    """Nobody acknowledged anything for as long as a caller had patience."""


class Callers:
    """What the threads of the test share."""

    def __init__(self, url: str, token: str, provider_url: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=url, headers=headers, trust_env=False)
        self._provider = httpx.Client(base_url=provider_url, trust_env=False)
        self._worker_id = str(uuid4())
        self._items = count()
        self._has_ended = Event()
        self._references: dict[str, Any] = {}
        self.patience_seconds = PATIENCE_SECONDS
        self.journal: list[Acknowledged] = []

    def close(self) -> None:
        """Hang up."""
        self._http.close()
        self._provider.close()

    def publish(self) -> None:
        """Publish a tool of each class."""
        for effect_class in KINDS:
            document = _document(effect_class, str(self._provider.base_url))
            for capability in document["capabilities"]:
                self._ask("/v1/grants", {"principal": "admin", "capability": capability})
            published = self._ask("/v1/contracts", {"document": document})
            self._references[effect_class] = published["reference"]

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Call without a pause, on several threads, until the context is left."""
        with ThreadPoolExecutor(THREADS) as threads:
            working = [threads.submit(self._work) for _ in range(THREADS)]
            try:
                yield
            finally:
                self._has_ended.set()
                for one in working:
                    one.result()

    def _work(self) -> None:
        while not self._has_ended.is_set():
            item = next(self._items)
            effect = self.dispatch(item, list(KINDS)[item % len(KINDS)])
            if effect["dispatch"]["owned"]:
                self.report(effect, self.send(effect))

    def count(self, state: str) -> int:
        """Return how often a state was acknowledged."""
        return sum(one.state == state for one in list(self.journal))

    # --- one call -------------------------------------------------------------------------------

    def dispatch(self, item: int, effect_class: str) -> dict[str, Any]:
        """Plan an effect, and ask for it until there is an answer."""
        asked = {
            "run": f"run-{item // 8}",
            "effect": f"item-{item}",
            "tool": self._references[effect_class],
            "arguments": {"item": item},
        }
        return self._taken(self._ask("/v1/effects", asked | {"dispatch": self._asking()}))

    def dispatch_again(self, effect_id: str) -> dict[str, Any]:
        """Take an effect that may be sent again."""
        return self._taken(self._ask(f"/v1/effects/{effect_id}/dispatch", self._asking()))

    def _asking(self) -> dict[str, str]:
        return {"worker_id": self._worker_id, "nonce": str(uuid4())}

    def _taken(self, effect: dict[str, Any]) -> dict[str, Any]:
        if effect["dispatch"]["owned"]:
            told = Acknowledged(effect["effect_id"], effect["dispatch"]["fence"], "DISPATCHED")
            self.journal.append(told)
        return effect

    def send(self, effect: dict[str, Any]) -> str:
        """Book what an effect is about; returns the provider's name for it."""
        dispatch = effect["dispatch"]
        kind = KINDS[effect["effect_class"]]
        headers = {"Effect-Id": effect["effect_id"], "Fence": str(dispatch["fence"])}
        if dispatch["idempotency_key"] is not None:
            headers["Idempotency-Key"] = dispatch["idempotency_key"]
        answer = self._provider.post(f"/{kind}", json=dispatch["arguments"], headers=headers)
        return answer.raise_for_status().json()["reference"]

    def report(self, effect: dict[str, Any], reference: str) -> None:
        """Say that an effect has succeeded, until somebody has heard it."""
        told = {
            "worker_id": self._worker_id,
            "fence": effect["dispatch"]["fence"],
            "outcome": "succeeded",
            "provider_reference": reference,
        }
        closed = self._ask(f"/v1/effects/{effect['effect_id']}/outcome", told)
        if "code" not in closed:
            state = Acknowledged(effect["effect_id"], closed["fence"], closed["state"])
            self.journal.append(state)

    def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Ask until there is an answer, which a stale fence is too. Raises NoAnswerError."""
        deadline = time.monotonic() + self.patience_seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                answer = self._http.post(path, json=body, timeout=min(left, REQUEST_SECONDS_MAX))
            except httpx.TransportError:
                pass
            else:
                if answer.is_success or answer.json()["code"] == "fence_stale":
                    return answer.json()
                assert answer.json()["retryable"], answer.text
            time.sleep(AGAIN_SECONDS)
        raise NoAnswerError(path)


@contextmanager
def provider(books: Path) -> Iterator[str]:
    """Run the reference provider; gives its address."""
    with listening(0) as listener:
        server = server_of(books, Plan())
        thread = Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def _document(effect_class: str, provider_url: str) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": f"failover.{effect_class.lower()}",
        "version": "1.0",
        "description": f"Book something at the provider; an effect of class {effect_class}.",
        "input_schema": {
            "type": "object",
            "properties": {"item": {"type": "integer"}},
            "required": ["item"],
            "additionalProperties": False,
        },
        "capabilities": [f"booking:write:{{tenant}}.{effect_class}"],
        "effect_class": effect_class,
        "lease_seconds": LEASE_SECONDS,
        "settle_seconds": 0,
        "evidence": {
            "source": "http",
            "consistency": "read_after_write",
            "http": {"url": f"{provider_url}/effects/{{effect_id}}", "timeout_seconds": 2},
            "answer": {
                "absent_statuses": [404],
                "state": "/status",
                "applied": ["booked"],
                "reference": "/reference",
                "bind": {"pointer": "/effect_id", "equals": "effect_id"},
                "match": {"/body/item": "/item"},
            },
        },
    }
    if effect_class == "IDEMPOTENT":
        document["idempotency"] = {
            "header": "Idempotency-Key",
            "retention_seconds": 86400,
            "conflict": {"statuses": [422]},
        }
    return document
