"""What is not well-formed is refused with its code and its place, and nothing is written."""

import json
from typing import Any

import pytest

from tests.api import Api
from tests.builders import ARGUMENTS, a_contract
from tests.fixtures import Owner
from tests.problems import problem_in
from tests.routes import PLACEHOLDERS, places

EFFECT = PLACEHOLDERS["{effect_id}"]
RUN, _, _ = EFFECT.partition(".")
LONG = "n" * 20_000
HOLE = "the value under test"

INVALID_CONTRACT = (422, "invalid_contract")
INVALID_REQUEST = (422, "invalid_request")
INVALID_ARGUMENTS = (422, "invalid_arguments")
TOO_LARGE = (413, "too_large")
NOT_FOUND = (404, "not_found")


async def refused(
    api: Api, method: str, path: str, content: bytes | None = None, media: str = "application/json"
) -> tuple[tuple[int, str], str | None]:
    """Send exactly these bytes; return the refusal and its pointer."""
    headers = {"Content-Type": media} if media else {}
    response = await api.http.request(method, path, content=content, headers=headers)
    problem = problem_in(response)
    return (problem["status"], problem["code"]), problem.get("pointer")


def filled(template: Any, raw: str | bytes) -> bytes:
    """Write a body with the hole in it filled, as it is, by what may not be JSON."""
    text = json.dumps(template).encode()
    raw = raw.encode() if isinstance(raw, str) else raw
    return text.replace(json.dumps(HOLE).encode(), raw)


def nested(levels: int) -> dict[str, Any]:
    """Return a schema with this many containers in one another."""
    schema: dict[str, Any] = {}
    for _ in range(levels - 1):
        schema = {"items": schema}
    return schema


def of(property_schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": property_schema}}


A = "/input_schema/properties/a"


@pytest.fixture
async def ready(api: Api) -> Api:
    await api.credential("billing-api")
    return api


async def test_schemas_that_nobody_can_be_held_to(ready: Api, owner: Owner):
    deepest = a_contract(version="1.0", input_schema=nested(64) | {"type": "object"})
    assert (await ready.submit(deepest)).status == 201
    before = await owner.counts()
    for schema, pointer in (
        (of({"type": "strin"}), f"{A}/type"),
        (of({"minimum": "1"}), f"{A}/minimum"),
        (of("string"), A),
        (of({}) | {"required": "a"}, "/input_schema/required"),
        ("object", "/input_schema"),
        (of({"$ref": "https://example.com/a.json"}), f"{A}/$ref"),
        (of({"$ref": "file:///etc/passwd"}), f"{A}/$ref"),
        (of({"$ref": "other.json#/a"}), f"{A}/$ref"),
        (of({"$ref": "#/$defs/missing"}), f"{A}/$ref"),
        (of({"$dynamicRef": "https://example.com/a"}), f"{A}/$dynamicRef"),
        (of({"$ref": "#/properties/a"}), A),
        (of({"pattern": "(?=a)b"}), f"{A}/pattern"),
        (of({"pattern": r"(a)\1"}), f"{A}/pattern"),
        (of({"pattern": "("}), f"{A}/pattern"),
        (of({"pattern": "((a{1000}){1000}){1000}"}), f"{A}/pattern"),
        (of({"patternProperties": {"(?!a)/~": {}}}), f"{A}/patternProperties/(?!a)~1~0"),
        (of(nested(100)), A + "/items" * 62),
        (nested(65) | {"type": "object"}, "/input_schema" + "/items" * 64),
    ):
        content = json.dumps({"document": a_contract(input_schema=schema)}).encode()
        told = await refused(ready, "POST", "/v1/contracts", content)
        assert told == (INVALID_CONTRACT, pointer), str(schema)[:80]
    large = {"type": "object", "description": "x" * 256 * 1024}
    for field in ("input_schema", "output_schema"):
        content = json.dumps({"document": a_contract(**{field: large})}).encode()
        told = await refused(ready, "POST", "/v1/contracts", content)
        assert told == (TOO_LARGE, f"/{field}")
    assert await owner.counts() == before


async def test_documents_that_are_no_contract(ready: Api, owner: Owner):
    before = await owner.counts()
    for field, raw, refusal, pointer in (
        ("version", '"2"', INVALID_CONTRACT, "/version"),
        ("version", '"v1.0"', INVALID_CONTRACT, "/version"),
        ("version", '"01.0"', INVALID_CONTRACT, "/version"),
        ("version", '"1.0.0.0"', INVALID_CONTRACT, "/version"),
        ("version", '"1.0-rc.1"', INVALID_CONTRACT, "/version"),
        ("version", r'"1.0\n"', INVALID_CONTRACT, "/version"),
        ("version", r'"\u0661.0"', INVALID_CONTRACT, "/version"),
        ("version", '"1.9999999999"', INVALID_CONTRACT, "/version"),
        ("version", "1.0", INVALID_CONTRACT, "/version"),
        ("version", "null", INVALID_CONTRACT, "/version"),
        ("name", '"send invoice"', INVALID_CONTRACT, "/name"),
        ("name", '""', INVALID_CONTRACT, "/name"),
        ("effect_class", '"MAYBE"', INVALID_CONTRACT, "/effect_class"),
        ("surprise", "1", INVALID_CONTRACT, "/surprise"),
        ("description", r'"a\ud800b"', INVALID_CONTRACT, "/description"),
        ("description", r'"a\u0000b"', INVALID_CONTRACT, "/description"),
        ("lease_seconds", "NaN", INVALID_CONTRACT, "/lease_seconds"),
        ("lease_seconds", "-Infinity", INVALID_CONTRACT, "/lease_seconds"),
        ("lease_seconds", "1e400", INVALID_CONTRACT, "/lease_seconds"),
        ("settle_seconds", "9007199254740993", INVALID_CONTRACT, "/settle_seconds"),
        ("input_schema", '{"a": 1, "a": 2}', INVALID_CONTRACT, "/input_schema/a"),
        ("input_schema", '{"\\ud800": 1}', INVALID_CONTRACT, "/input_schema"),
        ("description", f'"{"x" * 1024 * 1024}"', TOO_LARGE, ""),
        ("description", b'"\xff"', INVALID_REQUEST, ""),
        ("description", '"\t"', INVALID_REQUEST, ""),
    ):
        body = {"document": a_contract(**{field: HOLE})}
        told = await refused(ready, "POST", "/v1/contracts", filled(body, raw))
        assert told == (refusal, pointer), (field, raw[:40])
    for raw, refusal, pointer in (
        ('{"document": {}, "document": {}}', INVALID_CONTRACT, ""),
        ('{"document": {"name": "a", "name": "b"}}', INVALID_CONTRACT, "/name"),
        ('{"documents": {"name": "a", "name": "b"}}', INVALID_REQUEST, "/documents/name"),
        ('{"document": {}, "review": {"reviewer": NaN}}', INVALID_REQUEST, "/review/reviewer"),
        ('{"document": {}, "review": {"reviewer": ""}}', INVALID_REQUEST, "/review/reviewer"),
        ('{"document": {}}', INVALID_CONTRACT, None),
        ('{"document": []}', INVALID_REQUEST, "/document"),
        ('{"document": ' + "[" * 100_000, INVALID_CONTRACT, "/0" * 127),
    ):
        told = await refused(ready, "POST", "/v1/contracts", raw.encode())
        assert (told[0], told[1] if pointer is not None else None) == (refusal, pointer), raw[:60]
    assert await owner.counts() == before


PLAN = {"run": "r", "effect": "e", "tool": HOLE, "arguments": {}}


def changed(tool: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a plan's body with one member changed; a value of None leaves it out."""
    body: dict[str, Any] = {**PLAN, "tool": dict(tool), "arguments": dict(ARGUMENTS)}
    *parents, last = path.split(".")
    place = body
    for parent in parents:
        place = place.setdefault(parent, {})
    place.pop(last, None)
    return body if value is None else place.update({last: value}) or body


async def test_plans_that_are_not_well_formed(api: Api, owner: Owner):
    tool = await api.publish(a_contract())
    before = await owner.counts()
    deep = "[" * 100_000 + "]" * 100_000
    for path, raw, refusal, pointer in (
        ("arguments.memo", "NaN", INVALID_ARGUMENTS, "/memo"),
        ("arguments.memo", "9007199254740993", INVALID_ARGUMENTS, "/memo"),
        ("arguments.memo", "-9007199254740993", INVALID_ARGUMENTS, "/memo"),
        ("arguments.memo", "9007199254740993.0", INVALID_ARGUMENTS, "/memo"),
        ("arguments.memo", "1" * 10_000, INVALID_ARGUMENTS, "/memo"),
        ("arguments.memo", "1e400", INVALID_ARGUMENTS, "/memo"),
        ("arguments.memo", deep, INVALID_ARGUMENTS, "/memo" + "/0" * 126),
        ("arguments.memo", r'"\ud800"', INVALID_ARGUMENTS, "/memo"),
        ("arguments.memo", r'"\u0000"', INVALID_ARGUMENTS, "/memo"),
        ("arguments.memo", '{"a~/": 1, "a~/": 2}', INVALID_ARGUMENTS, "/memo/a~0~1"),
        ("arguments", '{"a": 1, "a": 1}', INVALID_ARGUMENTS, "/a"),
        ("arguments", "[]", INVALID_REQUEST, "/arguments"),
        ("arguments", "null", INVALID_REQUEST, "/arguments"),
        ("arguments", None, INVALID_REQUEST, "/arguments"),
        ("run", None, INVALID_REQUEST, "/run"),
        ("run", '""', INVALID_REQUEST, "/run"),
        ("run", "1", INVALID_REQUEST, "/run"),
        ("run", '"a", "run": "b"', INVALID_REQUEST, "/run"),
        ("run", json.dumps("r" * 201), INVALID_REQUEST, "/run"),
        ("effect", '""', INVALID_REQUEST, "/effect"),
        ("key", "[]", INVALID_REQUEST, "/key"),
        ("occurrence", "0", INVALID_REQUEST, "/occurrence"),
        ("occurrence", "1.0", INVALID_REQUEST, "/occurrence"),
        ("occurrence", "true", INVALID_REQUEST, "/occurrence"),
        ("occurrence", '"1"', INVALID_REQUEST, "/occurrence"),
        ("occurrence", "9007199254740991", INVALID_REQUEST, "/occurrence"),
        ("deadline_seconds", "0", INVALID_REQUEST, "/deadline_seconds"),
        ("deadline_seconds", "Infinity", INVALID_REQUEST, "/deadline_seconds"),
        ("deadline_seconds", "1e300", INVALID_REQUEST, "/deadline_seconds"),
        ("origin", '"elsewhere"', INVALID_REQUEST, "/origin"),
        ("origin", '"look_up"', INVALID_REQUEST, "/origin"),
        ("lease", '"not.a.lease"', INVALID_REQUEST, "/lease"),
        ("lease", '"é"', INVALID_REQUEST, "/lease"),
        ("surprise", "1", INVALID_REQUEST, "/surprise"),
        ("dispatch", "{}", INVALID_REQUEST, "/dispatch/worker_id"),
        ("dispatch", '{"worker_id": "x", "nonce": "y"}', INVALID_REQUEST, "/dispatch/worker_id"),
        ("dispatch", '{"worker_id": 1, "nonce": 2}', INVALID_REQUEST, "/dispatch/worker_id"),
        ("tool", None, INVALID_REQUEST, "/tool"),
        ("tool", "[]", INVALID_REQUEST, "/tool"),
        ("tool.surprise", "1", INVALID_REQUEST, "/tool/surprise"),
        ("tool.version", None, INVALID_REQUEST, "/tool/version"),
        ("tool.version", "2.1", INVALID_REQUEST, "/tool/version"),
        ("tool.version", '"latest"', INVALID_REQUEST, "/tool/version"),
        ("tool.name", '"No Name"', INVALID_REQUEST, "/tool/name"),
        ("tool.schema_hash", '"sha256:0"', INVALID_REQUEST, "/tool/schema_hash"),
        ("tool.capabilities", '["*"]', INVALID_REQUEST, "/tool/capabilities/0"),
        ("tool.effect_class", '"pure"', INVALID_REQUEST, "/tool/effect_class"),
        ("tool.credential_version", "-1", INVALID_REQUEST, "/tool/credential_version"),
        ("tool.credential_version", "true", INVALID_REQUEST, "/tool/credential_version"),
    ):
        template = changed(tool, path, HOLE if raw is not None else None)
        told = await refused(api, "POST", "/v1/effects", filled(template, raw or ""))
        assert told == (refusal, pointer), (path, (raw or "")[:40])
    assert await owner.counts() == before
    assert (await api.ask("POST", "/v1/effects", changed(tool, "surprise", None))).status == 201


async def test_the_largest_names_and_numbers_are_kept(api: Api):
    tool = await api.publish(a_contract())
    wide = "\U0001d54f" * 200
    names = {"run": wide, "effect": wide, "key": wide}
    effect = await api.dispatched(tool, **names, deadline_seconds=30 * 86400)
    shown = await api.show(effect)
    assert (shown["run"], shown["effect"], shown["key"]) == (wide, f"effect:{wide}", wide)
    again = await api.plan(tool, **names)
    assert (again.status, again.body["effect_id"]) == (200, effect["effect_id"])
    for fence in (2**31 - 1, 2**31, 2**53 - 1):
        beyond = effect | {"dispatch": {"fence": fence}}
        assert (await api.report(beyond, "succeeded")).refusal == NOT_FOUND
    error = {"code": wide, "message": "m" * 2000}
    reported = await api.report(effect, "failed", error=error, provider_reference=wide)
    assert reported.body["outcome"]["error"] == error
    for path, body in (
        ("/v1/pins", {"name": tool["name"], "version": "2.1", "holder": wide, "ttl_seconds": 1e6}),
        ("/v1/grants", {"principal": wide, "capability": f"{'a' * 84}:{'b' * 85}:{'c' * 85}"}),
        ("/v1/credentials", {"name": "n" * 100}),
    ):
        assert (await api.ask("POST", path, body)).status == 201
    path = f"/v1/workers/{api.worker_id}/heartbeat"
    assert (await api.ask("PUT", path, {"label": wide})).status == 200


async def test_no_route_takes_a_body_that_is_none_of_its_own(api: Api, owner: Owner):
    """Every route with a body, without a list of them here."""
    before = await owner.counts()
    most = 2 * 1024 * 1024
    for place in places(api.app):
        if not place.has_body:
            continue
        for content, media, refusal in (
            (b"", "application/json", INVALID_REQUEST),
            (b"", "", INVALID_REQUEST),
            (b"null", "application/json", INVALID_REQUEST),
            (b"[]", "application/json", INVALID_REQUEST),
            (b'"{}"', "application/json", INVALID_REQUEST),
            (b"1", "application/json", INVALID_REQUEST),
            (b"{", "application/json", INVALID_REQUEST),
            (b"{} {}", "application/json", INVALID_REQUEST),
            (b"\xef\xbb\xbf{}", "application/json", INVALID_REQUEST),
            ("{}".encode("utf-16"), "application/json; charset=utf-16", INVALID_REQUEST),
            (b"\xff", "application/json", INVALID_REQUEST),
            (b"NaN", "application/json", INVALID_REQUEST),
            (b'{"surprise": 1}', "application/json", INVALID_REQUEST),
            (b'{"a": 1, "a": 1}', "application/json", INVALID_REQUEST),
            (b'{"a": ' * 100_000, "application/json", INVALID_REQUEST),
            (b"{}", "text/plain", INVALID_REQUEST),
            (b"{}", "", INVALID_REQUEST),
            (b"a=1", "application/x-www-form-urlencoded", INVALID_REQUEST),
            (b" " * most, "application/json", INVALID_REQUEST),
            (b" " * (most + 1), "application/json", TOO_LARGE),
            (b" " * (most + 1), "text/plain", TOO_LARGE),
        ):
            told, _ = await refused(api, place.method, place.path, content, media)
            assert told == refusal, (place, content[:20], media)
    assert await owner.counts() == before


BODIES = {
    "dispatch": {"worker_id": RUN, "nonce": RUN},
    "outcome": {"worker_id": RUN, "fence": 2**53 - 1, "outcome": "unknown"},
    "cancel": {"reason": "not wanted"},
    "resolve": {"to": "FAILED", "reason": "seen", "evidence": "a ticket"},
    "evidence": {"answer": "applied", "observed_at": "2026-11-30T12:00:00Z", "detail": "seen"},
    "retry": {"reason": "seen"},
    "withdraw": {"reason": "seen"},
    "migrate": {"reason": "seen", "version": "2.1"},
}


async def test_what_is_no_effect_id_names_no_effect(api: Api, owner: Owner):
    before = await owner.counts()
    routes = [place for place in places(api.app) if "{effect_id}" in place.template]
    assert len(routes) == 2 + len(BODIES)
    for place in routes:
        content = json.dumps(BODIES.get(place.template.rpartition("/")[2])).encode()
        for effect_id in (
            EFFECT,
            RUN,
            f"{RUN}.",
            f"{RUN}.0",
            f"{RUN}.-1",
            f"{RUN}.01",
            f"{RUN}.+1",
            f"{RUN}.1.2",
            f"{RUN}.1_0",
            f"{RUN}.{2**63}",
            f"{RUN}.{'9' * 20_000}",
            f"{RUN}.%D9%A1",
            f"{RUN.upper()}.1",
            f"{{{RUN}}}.1",
            "x",
            "%FF",
            "%20",
            "..%2F..%2Fhealthz",
            LONG,
        ):
            path = place.template.replace("{effect_id}", effect_id)
            told, _ = await refused(api, place.method, path, content)
            assert told == NOT_FOUND, (place, effect_id[:60])
    assert await owner.counts() == before


async def test_names_in_addresses(api: Api, owner: Owner):
    """A name that cannot be is refused or found nowhere; whatever it is, it breaks nothing."""
    before = await owner.counts()
    for method, path, refusal, pointer in (
        ("GET", "/v1/contracts/tools.none/two", INVALID_REQUEST, "/version"),
        ("GET", f"/v1/contracts/tools.none/{LONG}", INVALID_REQUEST, "/version"),
        ("GET", f"/v1/contracts/{LONG}/1.0", (404, "tool_contract_not_found"), None),
        ("GET", "/v1/contracts/%FF%ED%A0%80/1.0", (404, "tool_contract_not_found"), None),
        ("GET", "/v1/contracts/a%00b/1.0", INVALID_REQUEST, None),
        ("POST", "/v1/contracts/a%00b/1.0/attest", INVALID_REQUEST, None),
        ("POST", "/v1/credentials/a%00b/rotate", INVALID_REQUEST, None),
        ("POST", f"/v1/credentials/{LONG}/rotate", NOT_FOUND, None),
        ("POST", f"/v1/rollouts/{LONG}/1.0/retire", (404, "tool_contract_not_found"), None),
        ("POST", "/v1/rollouts/tools.none/1/retire", INVALID_REQUEST, "/version"),
        ("POST", "/v1/rollouts/tools.none/1/rollback", INVALID_REQUEST, "/version"),
        ("DELETE", "/v1/pins/x", INVALID_REQUEST, None),
        ("DELETE", f"/v1/pins/{LONG}", INVALID_REQUEST, None),
        ("DELETE", f"/v1/pins/{RUN}%00", INVALID_REQUEST, None),
        ("DELETE", f"/v1/pins/{RUN}", NOT_FOUND, None),
        ("PUT", "/v1/workers/x/heartbeat", INVALID_REQUEST, None),
        ("PUT", f"/v1/workers/{LONG}/heartbeat", INVALID_REQUEST, None),
        ("GET", "/v1/%00", INVALID_REQUEST, None),
    ):
        told = await refused(api, method, path, b"{}")
        assert told == (refusal, pointer), (method, path[:60])
    assert await owner.counts() == before


async def test_queries(api: Api, owner: Owner):
    before = await owner.counts()
    for path, status in (
        ("/v1/effects?limit=0", 422),
        ("/v1/effects?limit=501", 422),
        ("/v1/effects?limit=-1", 422),
        ("/v1/effects?limit=1.5", 422),
        ("/v1/effects?limit=ten", 422),
        ("/v1/effects?limit=", 422),
        (f"/v1/effects?limit={'9' * 10_000}", 422),
        ("/v1/effects?state=OPEN", 422),
        ("/v1/effects?state=planned", 422),
        ("/v1/effects?state=", 422),
        ("/v1/effects?open=perhaps", 422),
        ("/v1/effects?after=x", 404),
        (f"/v1/effects?after={RUN}.0", 404),
        (f"/v1/effects?after={LONG}", 404),
        ("/v1/effects?run=%00", 422),
        ("/v1/effects?tool=a%00b", 422),
        ("/v1/contracts?state=GONE", 422),
        ("/v1/contracts?name=%00", 422),
        ("/v1/grants?principal=%00", 422),
        ("/v1/effects?limit=500&state=PLANNED&open=true", 200),
        (f"/v1/effects?after={EFFECT}&run={LONG}&tool=%FF", 200),
        (f"/v1/contracts?name={LONG}", 200),
        ("/v1/contracts?name=%ED%A0%80", 200),
        (f"/v1/grants?principal={LONG}", 200),
    ):
        response = await api.http.get(path)
        assert response.status_code == status, (path[:60], response.text)
        if status != 200:
            code = problem_in(response)["code"]
            assert (status, code) in (INVALID_REQUEST, NOT_FOUND), path
    for query in ("", "?principal=admin", "?principal=admin&capability=%00"):
        told, _ = await refused(api, "DELETE", f"/v1/grants{query}")
        assert told == INVALID_REQUEST
    assert await owner.counts() == before


async def test_headers_that_are_nonsense_change_nothing(api: Api):
    for name, value in (
        (b"If-None-Match", b"W/\xff"),
        (b"Content-Length", b"none"),
        (b"Accept", b"text/html"),
        (b"Cookie", b"\x01"),
    ):
        response = await api.http.get("/v1/contracts", headers={name: value})
        assert (response.status_code, response.json()) == (200, {"contracts": []})
