"""The far side of the wire, for tests of the clients."""

import json
import threading
from dataclasses import replace
from typing import Any

import httpx

from tallystick.tool_contract import Contract, EffectClass

TOKEN = "s3cret-t0ken"
RUN = "01890000-0000-7000-8000-000000000001"
CONTRACT = Contract.of(
    name="billing.send_invoice",
    version="1.0",
    description="Sends an invoice.",
    input_schema={"type": "object", "properties": {"customer_id": {"type": "string"}}},
    capabilities=["invoice:write:acme"],
    effect_class="IDEMPOTENT",
    idempotency={
        "header": "Idempotency-Key",
        "retention_seconds": 86400,
        "conflict": {"statuses": [409]},
    },
)
INVOICE = CONTRACT.reference(credential_version=0)
LOOKUP = replace(INVOICE, name="billing.look_up", effect_class=EffectClass.PURE)
ARGUMENTS = {"customer_id": "c-1"}


class Service:
    """Answers as the service does, for one effect, and keeps what it was asked.

    Its clock goes on by a second with every request. A fault is what becomes of a request: "down"
    (it never arrives), "interrupted" (a person stops it), "lost" (it is obeyed, and its answer is
    lost), or another answer.
    """

    def __init__(self, *faults, otherwise=None):
        self.now = 1000.0
        self.faults = list(faults)
        self.otherwise = otherwise
        self.asked = []
        self.heartbeats = []
        self.heard_heartbeat = threading.Event()
        self.effect: Any = None
        self.lease_seconds = 60.0

    def clock(self):
        return self.now

    def __call__(self, request):
        if request.url.path.endswith("/heartbeat"):
            self.heartbeats.append(request)
            self.heard_heartbeat.set()
            return httpx.Response(200, json={})
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        self.now += 1
        body = json.loads(request.content) if request.content else None
        self.asked.append((request.method, request.url.raw_path.decode(), body))
        fault = self.faults.pop(0) if self.faults else self.otherwise
        if fault == "down":
            raise httpx.ConnectError("Connection refused", request=request)
        if fault == "interrupted":
            raise KeyboardInterrupt
        if isinstance(fault, httpx.Response):  # a copy: a stream is read once
            return httpx.Response(fault.status_code, headers=fault.headers, content=fault.content)
        answer = self.answer(request.url.path, body)
        if fault == "lost":
            raise httpx.ReadTimeout("timed out", request=request)
        return answer

    def answer(self, path, body):
        if path.endswith("/outcome"):
            return self.complete(body)
        if path.endswith("/cancel"):
            self.effect["state"] = "CANCELLED"
        elif path.endswith("/retry"):
            self.effect["state"] = "RETRYABLE"
        elif body is not None:
            self.plan(body)
        return httpx.Response(200, json=self.effect)

    def plan(self, body):
        claim = body.get("dispatch", body if "nonce" in body else None)
        self.effect = self.effect or an_effect(state="PLANNED")
        if claim and self.effect["state"] == "PLANNED":
            self.effect |= {"state": "DISPATCHED", "claim": claim, "fence": 1}
        owned = self.effect["state"] == "DISPATCHED" and self.effect["claim"] == claim
        self.effect["dispatch"] = {
            "owned": owned,
            "fence": 1,
            "attempt": 1,
            "lease_seconds": self.lease_seconds,
            "idempotency_key": "key-1",
            "idempotency": {"header": "Idempotency-Key"},
        }

    def complete(self, body):
        if body["fence"] != self.effect["fence"]:
            return problem(409, "fence_stale")
        outcome = {
            "status": body["outcome"].upper(),
            "result": body.get("result"),
            "error": body.get("error"),
        }
        self.effect |= {"state": outcome["status"], "outcome": outcome, "dispatch": None}
        return httpx.Response(200, json=self.effect)

    @property
    def reports(self):
        return [body for _, path, body in self.asked if path.endswith("/outcome")]


def an_effect(**members):
    return {"effect_id": f"{RUN}.7", "state": "PLANNED", "outcome": None, **members}


def problem(status, code, *, headers=None, **members):
    document = {"type": "about:blank", "status": status, "code": code, "detail": f"No: {code}."}
    media_type = "application/problem+json; charset=utf-8"
    content = json.dumps(document | members).encode()
    return httpx.Response(
        status, content=content, headers={"Content-Type": media_type, **(headers or {})}
    )


def answer(status, media_type, text, **headers):
    return httpx.Response(status, text=text, headers={"Content-Type": media_type, **headers})


def options_for(service):
    return {
        "url": "http://registry.test/",
        "token": TOKEN,
        "transport": httpx.MockTransport(service),
        "clock": service.clock,
        "random": lambda: 0.0,
    }
