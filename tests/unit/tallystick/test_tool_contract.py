"""Which documents are contracts, what their digests are of, and the tuple that names one."""

import dataclasses
import json
from copy import deepcopy
from typing import Any

import pytest

from tallystick.canonical import digest, parse_json
from tallystick.document import DOCUMENT_BYTES_MAX
from tallystick.errors import InvalidContract, InvalidRequest, TooLarge
from tallystick.schema import (
    DIALECTS,
    DRAFT_04,
    DRAFT_06,
    DRAFT_07,
    DRAFT_2020_12,
    check_schema,
)
from tallystick.tool_contract import (
    TRAITS,
    Contract,
    EffectClass,
    ToolReference,
    Version,
    contract_schema,
)
from tests.builders import a_contract, a_contract_of, http_evidence

ABSENT = object()
CONFLICT = {"statuses": [409]}
AT = {"type": "object", "properties": {"id": {}}}
OWNED = {"argument": "/customer_id", "kind": "customer", "subject": "customer_id"}
ASKED = {"asked": "/id", "owner": "/id"}


def changed(pointer, value, document=None) -> Any:
    """Return the document with the value at a pointer set, or taken away."""
    document = deepcopy(a_contract(evidence=http_evidence(9)) if document is None else document)
    *path, last = pointer.removeprefix("/").split("/")
    place: Any = document
    for token in path:
        place = place[int(token) if isinstance(place, list) else token]
    if value is ABSENT:
        del place[last]
    else:
        place[int(last) if isinstance(place, list) else last] = value
    return document


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pointer", "value", "detail"),
    [
        *[
            (f"/{field}", ABSENT, "this property is required")
            for field in (
                *("name", "version", "description", "input_schema", "capabilities"),
                "effect_class",
            )
        ],
        ("/colour", "red", "colour: this property is not declared"),
        ("/kind", "write", "this property is not declared"),
        ("/evidence/http/method", "POST", "this property is not declared"),
        ("/title", None, "is not of type"),
        # names and versions
        ("/name", "send invoice", "does not match"),
        ("/name", "billing..send", "does not match"),
        ("/name", "a" * 129, "longer than 128"),
        ("/name", "billing.send\n", "does not match"),
        ("/version", 1.0, 'quote it, "1.0"'),
        ("/version", 2, 'quote it, "1.0"'),
        ("/version", "1", "does not match"),
        ("/version", "1.0.0.0", "does not match"),
        ("/version", "1.00", "does not match"),
        ("/version", "v1.0", "does not match"),
        ("/version", "1.0-beta", "does not match"),
        ("/version", "1.9999999999", "does not match"),
        ("/description", "", "shorter than 1"),
        # schemas
        ("/input_schema", True, 'is not of type "object"'),
        ("/output_schema", False, 'is not of type "object"'),
        ("/input_schema/properties/memo/type", "strin", "not valid JSON Schema"),
        ("/output_schema/properties/invoice_id/$ref", "https://example.com", "must stay in"),
        ("/input_schema/properties/memo/pattern", "(?=a)", "the pattern is malformed"),
        ("/output_schema/$schema", DRAFT_07, "the contract's dialect is"),
        ("/dialect", "https://json-schema.org/draft/2019-09/schema", "is not one of"),
        # runtime-owned fields
        ("/capabilities/0", "invoice:write", "does not match"),
        ("/capabilities/0", "invoice:write:*", "does not match"),
        ("/capabilities/0", "invoice:write:{user}", "does not match"),
        ("/capabilities/0", "invoice:{tenant}:x", "does not match"),
        ("/capabilities", ["a:b:c", "a:b:c"], "non-unique"),
        ("/effect_class", "SAFE", "is not one of"),
        ("/approval", "sometimes", "is not one of"),
        ("/credential", "a slot", "does not match"),
        ("/attempts_max", 0, "less than the minimum of 1"),
        ("/max_duplicates", 1, "allows no duplicates"),
        ("/lease_seconds", 0.5, "less than the minimum of 1"),
        ("/lease_seconds", 86401, "greater than the maximum of 86400"),
        ("/settle_seconds", -1, "less than the minimum of 0"),
        ("/settle_seconds", 604801, "greater than the maximum of 604800"),
        ("/result_limit", 63, "less than the minimum of 64"),
        # the idempotency key
        ("/idempotency", ABSENT, "IDEMPOTENT needs the place"),
        ("/idempotency/conflict", ABSENT, "IDEMPOTENT needs the provider's answer"),
        ("/idempotency/retention_seconds", ABSENT, "this property is required"),
        ("/idempotency/retention_seconds", 0, "less than the minimum of 1"),
        ("/idempotency/header", "Bad Header", "does not match"),
        ("/idempotency/conflict/statuses", [], "less than 1 item"),
        # evidence
        ("/evidence/source", "rumour", "is not one of"),
        ("/evidence/http/url", "https://example.com/", "does not match"),
        ("/evidence/http/url", "ftp://example.com/{effect_id}", "does not match"),
        ("/evidence/http/url", "https://example.com/{effect_id}/{tenant}", "does not match"),
        ("/evidence/http/url", "https://me:pw@example.com/{effect_id}", "names a user"),
        ("/evidence/http/url", "https://{effect_id}@example.com", "names a user"),
        ("/evidence/http/timeout_seconds", 31, "greater than the maximum of 30"),
        ("/evidence/answer/state", "status", "does not match"),
        ("/evidence/answer/applied", [], "less than 1 item"),
        ("/evidence/answer/bind/equals", "the_weather", "is not one of"),
        ("/evidence/lag_seconds", -1, "less than the minimum of 0"),
        ("/evidence/consistency", ABSENT, "this property is required"),
        ("/evidence/http", ABSENT, "this property is required"),
        ("/evidence/plugin", {"name": "books"}, "belongs to the source plugin"),
    ],
)
def test_document_is_refused_at_its_place(pointer, value, detail):
    with pytest.raises(InvalidContract) as refused:
        Contract.parse(changed(pointer, value))

    assert refused.value.pointer == pointer
    assert detail in refused.value.detail


@pytest.mark.parametrize(
    ("document", "pointer", "detail"),
    [
        ("text", "", "is not of type"),
        (None, "", "is not of type"),
        ([], "", "is not of type"),
        (a_contract(colour=1), "/colour", "this property is not declared"),
        (a_contract(**{"a/b~": 1}), "/a~1b~0", "this property is not declared"),
        (a_contract(examples=[float("nan")]), "/examples/0", "a number that a double cannot hold"),
        (a_contract(examples=["\ud800"]), "/examples/0", "a lone surrogate"),
        (a_contract(examples=["\0"]), "/examples/0", "the character NUL"),
        (a_contract(capabilities=("a:b:c",)), "/capabilities", "a Python tuple is not JSON"),
        (
            a_contract(identity_fields=["memo", "colour"]),
            "/identity_fields/1",
            "must be a property",
        ),
        (
            a_contract(ownership=[{**OWNED, "argument": "/order_id"}]),
            "/ownership/0/argument",
            "declares no such argument",
        ),
        (
            a_contract(ownership=[OWNED, {**OWNED, "tool": "customers.get"}]),
            "/ownership/1/asked",
            "required",
        ),
        (
            a_contract(ownership=[{**OWNED, **ASKED, "tool": "billing.send_invoice"}]),
            "/ownership/0/tool",
            "PURE",
        ),
        (a_contract(ownership=[{**OWNED, "kind": "<b>"}]), "/ownership/0/kind", "match"),
        (a_contract(ownership=[]), "/ownership", "less than 1 item"),
        (
            a_contract(returned=[{"argument": "/memo"}, {"argument": "/memo/deeper"}]),
            "/returned/1/argument",
            "declares no such argument",
        ),
        (
            a_contract(returned=[{"argument": "/customer_id", "tools": ["1"]}]),
            "/returned/0/tools/0",
            "match",
        ),
        (a_contract(identity_fields=[]), "/identity_fields", "less than 1 item"),
        (
            a_contract(errors=[{"code": "e", "meaning": "m"}]),
            "/errors/0/retryable",
            "this property is required",
        ),
        (
            a_contract(errors=[{"code": "e", "meaning": m, "retryable": True} for m in "mn"]),
            "/errors/1/code",
            "an error code has two meanings",
        ),
        (
            changed("/idempotency/conflict/statuses", [99]),
            "/idempotency/conflict/statuses/0",
            "less than the minimum of 100",
        ),
        (
            changed("/idempotency/argument", "/key"),
            "/idempotency",
            "valid under more than one",
        ),
        (changed("/idempotency/header", ABSENT), "/idempotency", "oneOf"),
        (a_contract_of("UNKNOWN", attempts_max=2), "/attempts_max", "UNKNOWN allows one attempt"),
        (a_contract_of("NON_RETRYABLE", attempts_max=2), "/attempts_max", "allows one attempt"),
        (
            a_contract_of(
                "UNKNOWN",
                evidence=changed("/http/url", "http://a/{idempotency_key}", http_evidence(9)),
            ),
            "/evidence/http/url",
            "no idempotency key to ask by",
        ),
        (
            a_contract_of(
                "UNKNOWN",
                evidence=changed("/answer/bind/equals", "idempotency_key", http_evidence(9)),
            ),
            "/evidence/answer/bind/equals",
            "no idempotency key to ask by",
        ),
        (
            a_contract(input_schema={"$schema": DRAFT_07}, dialect=DRAFT_2020_12),
            "/input_schema/$schema",
            "the contract's dialect is",
        ),
        (
            a_contract(
                input_schema={"$schema": DRAFT_07}, output_schema={"$schema": DRAFT_2020_12}
            ),
            "/output_schema/$schema",
            "the contract's dialect is",
        ),
    ],
)
def test_document_is_refused_for_what_it_holds(document, pointer, detail):
    with pytest.raises(InvalidContract) as refused:
        Contract.parse(document)

    assert refused.value.pointer == pointer
    assert detail in refused.value.detail


def test_refusal_of_a_bottomless_document_is_quick():
    bottomless: Any = []
    for _ in range(100_000):
        bottomless = [bottomless]

    with pytest.raises(InvalidContract, match="nested more than 128 deep"):
        Contract.parse(a_contract(examples=bottomless))


def test_documents_and_schemas_have_size_limits():
    Contract.parse(a_contract(examples=["x" * (DOCUMENT_BYTES_MAX - 2000)]))

    with pytest.raises(TooLarge) as refused:
        Contract.parse(a_contract(examples=["x" * DOCUMENT_BYTES_MAX]))
    assert refused.value.pointer == ""
    with pytest.raises(TooLarge) as refused:
        Contract.parse(a_contract(output_schema={"const": "x" * 256 * 1024}))
    assert refused.value.pointer == "/output_schema"


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "createPage"},  # as tools of the Model Context Protocol are named
        {"name": "browser_click"},
        {"name": "a-b.C_d.e"},
        {"capabilities": []},
        {"capabilities": ["a.b-c_1:read:x.{tenant}.y"]},
        {"idempotency": {"argument": "/k", "retention_seconds": 9, "conflict": CONFLICT}},
        {"input_schema": {}},
        {"effect_class": "REPLAYABLE", "max_duplicates": 2},
        {"effect_class": "UNKNOWN", "attempts_max": 1},
        {"evidence": http_evidence(9, consistency="eventual")},
    ],
)  # fmt: skip
def test_document_is_accepted(changes):
    Contract.parse(a_contract(**changes))


# --- what it gives --------------------------------------------------------------------------------


def test_fields_have_types_and_defaults():
    contract = Contract.of(
        name="crm.find",
        version="1.0",
        description="Find a customer.",
        input_schema={"type": "object"},
        capabilities=[],
        effect_class=EffectClass.PURE,
        title=None,
    )

    assert contract.document == {
        "name": "crm.find",
        "version": "1.0.0",
        "description": "Find a customer.",
        "input_schema": {"type": "object"},
        "capabilities": [],
        "effect_class": "PURE",
    }
    assert (contract.version, contract.kind) == (Version(1, 0, 0), "read")
    assert (contract.lease_seconds, contract.settle_seconds) == (60, 60)
    assert (contract.approval, contract.result_limit) == ("never", 4000)
    assert (contract.dialect, contract.assert_format) == (DRAFT_2020_12, False)
    assert contract.output_schema is contract.credential is contract.idempotency is None
    assert contract.evidence is contract.identity_fields is contract.title is None
    assert contract.errors == contract.ownership == contract.returned == ()


@pytest.mark.parametrize(
    ("effect_class", "kind", "attempts_max"),
    [
        ("PURE", "read", 3),
        ("IDEMPOTENT", "write", 3),
        ("REPLAYABLE", "write", 3),
        ("UNKNOWN", "write", 1),
        ("NON_RETRYABLE", "write", 1),
    ],
)
def test_effect_class_decides_kind_and_attempts(effect_class, kind, attempts_max):
    contract = Contract.parse(a_contract_of(effect_class))

    assert (contract.kind, contract.attempts_max) == (kind, attempts_max)
    assert contract.max_duplicates == 0


@pytest.mark.parametrize(
    ("schema", "argument"),
    [
        ({"properties": {"lines": {"items": {"properties": {"id": {}}}}}}, "/lines/id"),
        ({"properties": {"lines": {"items": {"properties": {"id": {}}}}}}, "/lines/0/id"),
        ({"properties": {"at": {"$ref": "#/$defs/at"}}, "$defs": {"at": AT}}, "/at/id"),
        ({"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}, "/b"),
        ({"additionalProperties": {"type": "string"}}, "/any"),
        ({}, "/any/thing"),
        ({"properties": {"free": {}}}, "/free/thing"),
    ],
)
def test_an_identifier_may_stand_wherever_the_schema_has_room_for_it(schema, argument):
    contract = Contract.parse(
        a_contract(
            input_schema={"type": "object", **schema},
            ownership=[{**OWNED, **ASKED, "argument": argument, "tool": "crm.get"}],
            returned=[{"argument": argument}, {"argument": argument, "tools": ["crm.find"]}],
        )
    )

    (owned,) = contract.ownership
    assert (owned.argument, owned.tool, owned.asked, owned.owner) == (
        argument,
        "crm.get",
        "/id",
        "/id",
    )
    assert [each.tools for each in contract.returned] == [None, frozenset({"crm.find"})]


def test_the_provider_is_described():
    contract: Any = Contract.parse(
        a_contract(
            evidence=http_evidence(9),
            errors=[{"code": "e", "meaning": "m", "retryable": True, "not_executed": True}],
        )
    )
    idempotency, evidence = contract.idempotency, contract.evidence

    assert (idempotency.header, idempotency.argument) == ("Idempotency-Key", None)
    assert idempotency.conflict_statuses == {409}
    assert (evidence.consistency, evidence.http.timeout_seconds) == ("read_after_write", 2)
    assert evidence.answer.absent_statuses == {404}
    assert evidence.answer.applied == ("applied",)
    assert (evidence.answer.bind.pointer, evidence.answer.bind.equals) == (
        "/effect_id",
        "effect_id",
    )
    assert evidence.answer.match == {"/amount_cents": "/amount_cents"}
    assert contract.errors[0].not_executed


def test_contract_cannot_be_changed():
    document = deepcopy(a_contract())
    contract = Contract.parse(document)
    before = contract.contract_digest
    document["input_schema"]["properties"]["colour"] = {}

    assert Contract.parse(a_contract()).contract_digest == before == digest(dict(contract.document))
    with pytest.raises(dataclasses.FrozenInstanceError):
        contract.name = "other"  # pyright: ignore[reportAttributeAccessIssue]


def test_equal_documents_make_equal_contracts():
    one, other = (
        Contract.parse(a_contract(version="2.1")),
        Contract.parse(a_contract(version="2.1.0")),
    )

    assert one == other
    assert len({one, other, Contract.parse(a_contract(version="2.2"))}) == 2
    assert one != "billing.send_invoice"


@pytest.mark.parametrize(
    ("stated", "schema", "dialect"),
    [
        (None, {}, DRAFT_2020_12),
        (DRAFT_07, {}, DRAFT_07),
        (None, {"$schema": DRAFT_07}, DRAFT_07),
        (None, {"$schema": DRAFT_07.rstrip("#")}, DRAFT_07),
        (DRAFT_07, {"$schema": DRAFT_07}, DRAFT_07),
        (DRAFT_06, {}, DRAFT_06),
        (None, {"$schema": DRAFT_04}, DRAFT_04),
    ],
)
def test_dialect_is_what_the_document_says_or_else_its_input_schema(stated, schema, dialect):
    contract = Contract.parse(a_contract(dialect=stated, input_schema=schema))

    assert contract.dialect == dialect


# --- digests --------------------------------------------------------------------------------------


ALL = {"schema_hash", "prompt_hash", "contract_digest"}


@pytest.mark.parametrize(
    ("pointer", "value", "moved"),
    [
        ("/name", "billing.send", {"contract_digest"}),
        ("/version", "2.2", {"contract_digest"}),
        ("/version", "2.1.0", set()),
        ("/effect_class", "REPLAYABLE", {"contract_digest"}),
        ("/capabilities/0", "invoice:write:x", {"contract_digest"}),
        ("/lease_seconds", 31, {"contract_digest"}),
        ("/approval", "never", {"contract_digest"}),  # absent is not the same as the default
        ("/dialect", DRAFT_2020_12, {"contract_digest"}),
        ("/description", "Other.", {"prompt_hash", "contract_digest"}),
        ("/title", "Other.", {"prompt_hash", "contract_digest"}),
        ("/examples", [{}], {"prompt_hash", "contract_digest"}),
        ("/input_schema/description", "Other.", {"prompt_hash", "contract_digest"}),
        ("/input_schema/properties/memo/title", "Other.", {"prompt_hash", "contract_digest"}),
        ("/output_schema/properties/invoice_id/examples", [1], {"prompt_hash", "contract_digest"}),
        ("/input_schema/properties/memo/$comment", "Other.", {"contract_digest"}),
        ("/input_schema/properties/memo/deprecated", True, {"contract_digest"}),
        ("/input_schema/properties/memo/default", "", {"schema_hash", "contract_digest"}),
        ("/input_schema/properties/memo/maxLength", 9, {"schema_hash", "contract_digest"}),
        ("/input_schema/properties/title", {}, {"schema_hash", "contract_digest"}),
        ("/input_schema/properties/memo", {"type": "null", "title": "t"}, ALL),
        ("/input_schema/required", ["amount_cents", "customer_id"], {"contract_digest"}),
        ("/input_schema/x-unit", "cents", {"schema_hash", "contract_digest"}),
        ("/output_schema/required", ABSENT, {"schema_hash", "contract_digest"}),
        ("/output_schema", ABSENT, {"schema_hash", "contract_digest"}),
        ("/output_schema", {}, {"schema_hash", "contract_digest"}),
    ],
)
def test_each_digest_moves_with_what_it_is_of(pointer, value, moved):
    before = Contract.parse(a_contract())
    after = Contract.parse(changed(pointer, value, a_contract()))

    assert {name for name in ALL if getattr(before, name) != getattr(after, name)} == moved


def test_input_and_output_schema_are_told_apart():
    schemas = {"input_schema": {"minimum": 1}, "output_schema": {"minimum": 2}}
    swapped = {"input_schema": {"minimum": 2}, "output_schema": {"minimum": 1}}

    one, other = (Contract.parse(a_contract(**each)) for each in (schemas, swapped))
    assert one.schema_hash != other.schema_hash


def test_digests_are_what_anyone_can_compute():
    contract = Contract.parse(a_contract(output_schema=None, input_schema={"title": "t"}))

    assert contract.schema_hash == digest({"input": {}})
    with_output = Contract.parse(
        a_contract(output_schema={"title": "t"}, input_schema={"const": 1})
    )
    assert with_output.schema_hash == digest({"input": {"const": 1}, "output": {}})
    assert contract.prompt_hash == digest(
        {"description": contract.description, "/input_schema": {"title": "t"}}
    )
    assert contract.contract_digest == digest(
        a_contract(output_schema=None, input_schema={"title": "t"}, version="2.1.0")
    )


# --- files ----------------------------------------------------------------------------------------


YAML = """
name: crm.find
version: "1.0"
description: Find a customer.
input_schema: {type: object}
capabilities: []
effect_class: PURE
"""


def test_json_and_yaml_files_are_one_contract(tmp_path):
    (tmp_path / "find.yaml").write_text(YAML, encoding="utf-8")
    contract = Contract.load(tmp_path / "find.yaml")
    (tmp_path / "find.JSON").write_text(json.dumps(dict(contract.document)), encoding="utf-8")

    assert Contract.load(str(tmp_path / "find.JSON")) == contract


@pytest.mark.parametrize(
    ("name", "content", "error", "pointer", "detail"),
    [
        ("a.yaml", YAML.replace('"1.0"', "1.0"), InvalidContract, "/version", 'quote it, "1.0"'),
        ("a.yml", YAML + "name: other", InvalidContract, "/name", "line 8"),
        ("a.yaml", YAML + "title: &a x", InvalidContract, "/title", "an anchor"),
        ("a.json", '{"name": 1, "name": 2}', InvalidContract, "/name", "has already"),
        ("a.json", '{"examples": [NaN]}', InvalidContract, "/examples/0", "NaN"),
        ("a.json", "[" * 100_000, InvalidContract, "/0" * 128, "nested more than 128 deep"),
        ("a.json", b"\xff", InvalidContract, "", "byte 0 is not UTF-8"),
        ("a.toml", "", InvalidContract, None, "ends in .json, .yaml or .yml"),
        ("a.json", b" " * (DOCUMENT_BYTES_MAX + 1), TooLarge, "", "larger than"),
        ("a.yaml", b"a" * (10 * DOCUMENT_BYTES_MAX), TooLarge, "", "larger than"),
    ],
)
def test_file_that_is_no_contract_is_refused(tmp_path, name, content, error, pointer, detail):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())

    with pytest.raises(error) as refused:
        Contract.load(path)
    assert refused.value.pointer == pointer
    assert detail in refused.value.detail


def test_missing_file_is_the_systems_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        Contract.load(tmp_path / "none.json")


# --- the shipped schema of the document -----------------------------------------------------------


def test_shipped_schema_is_one_that_we_would_accept():
    check_schema(contract_schema(), dialect=DRAFT_2020_12, pointer="")


def test_shipped_schema_and_code_agree():
    properties: Any = contract_schema()["properties"]
    fields = {field.name for field in dataclasses.fields(Contract)}

    # The document itself, and what only a model reads, are the differences.
    assert fields - {"document"} == properties.keys() - {"examples"}
    assert properties["effect_class"]["enum"] == list(EffectClass)
    assert properties["dialect"]["enum"] == list(DIALECTS)
    assert all("description" in each for each in properties.values())
    defaults = {name: each["default"] for name, each in properties.items() if "default" in each}
    contract = Contract.parse(a_contract(lease_seconds=None, settle_seconds=None))
    assert defaults == {name: getattr(contract, name) for name in defaults}


# --- versions -------------------------------------------------------------------------------------


def test_versions_compare_by_number():
    texts = ["1.0", "1.2", "1.10", "2.0.1", "10.0"]

    assert sorted(map(Version.parse, reversed(texts))) == [*map(Version.parse, texts)]
    assert str(Version.parse("1.10")) == "1.10.0"
    assert Version.parse("1.0") == Version.parse("1.0.0")


@pytest.mark.parametrize(
    "text", ["", "1", "1.", "1.0.", "01.0", "1.0.0.0", "1.x", "-1.0", "1.0\n", "\u0661.0"]
)
def test_what_is_no_version_is_refused(text):
    with pytest.raises(InvalidContract) as refused:
        Version.parse(text)

    assert refused.value.pointer == "/version"


# --- the tuple ------------------------------------------------------------------------------------


def test_tuple_names_the_contract():
    contract = Contract.parse(a_contract(capabilities=["invoice:write:{tenant}", "crm:read:all"]))
    reference = contract.reference(credential_version=19, tenant="tenant-42")

    assert reference.to_json() == {
        "name": "billing.send_invoice",
        "version": "2.1.0",
        "schema_hash": contract.schema_hash,
        "capabilities": ["crm:read:all", "invoice:write:tenant-42"],
        "effect_class": "IDEMPOTENT",
        "credential_version": 19,
    }
    assert ToolReference.from_json(reference.to_json()) == reference
    narrower = contract.reference(credential_version=19, capabilities=["crm:read:all"])
    assert narrower.capabilities == {"crm:read:all"}
    assert contract.reference(credential_version=0).capabilities == contract.capabilities


REFERENCE = Contract.parse(a_contract()).reference(credential_version=1, tenant="t").to_json()


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        *[(f"/{field}", ABSENT) for field in REFERENCE],
        ("/colour", "red"),
        ("/name", "send invoice"),
        ("/version", 2.1),
        ("/version", "2"),
        ("/schema_hash", "a91e7c3b44e0c012"),  # a short form is for people's eyes
        ("/schema_hash", "sha256:" + "A" * 64),
        ("/capabilities", "invoice:write:t"),
        ("/capabilities/0", "invoice:write"),
        ("/effect_class", "pure"),
        ("/credential_version", -1),
        ("/credential_version", True),
        ("/credential_version", 1.5),
    ],
)
def test_tuple_of_another_form_is_refused_at_its_place(pointer, value):
    with pytest.raises(InvalidRequest) as refused:
        ToolReference.from_json(changed(pointer, value, REFERENCE))

    assert refused.value.pointer == pointer


@pytest.mark.parametrize("value", [None, [], "text", 1])
def test_what_is_no_tuple_at_all_is_refused(value):
    with pytest.raises(InvalidRequest):
        ToolReference.from_json(value)


def test_tuple_normalises_its_version():
    assert ToolReference.from_json(REFERENCE | {"version": "2.1"}).version == "2.1.0"


# --- effect classes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("effect_class", "key_required", "reconciled", "lost_lease", "absent", "inconclusive", "again"),
    [
        # class            key    asked  lost lease   absent         inconclusive   by machine
        ("PURE",          False, False, "RETRYABLE", "RETRYABLE",   "RETRYABLE",   True),
        ("IDEMPOTENT",    True,  True,  "UNKNOWN",   "RETRYABLE",   "QUARANTINED", True),
        ("REPLAYABLE",    False, True,  "UNKNOWN",   "RETRYABLE",   "RETRYABLE",   True),
        ("UNKNOWN",       False, True,  "UNKNOWN",   "QUARANTINED", "QUARANTINED", False),
        ("NON_RETRYABLE", False, True,  "UNKNOWN",   "QUARANTINED", "QUARANTINED", False),
    ],
)  # fmt: skip
def test_traits(effect_class, key_required, reconciled, lost_lease, absent, inconclusive, again):
    traits = TRAITS[EffectClass(effect_class)]

    assert (traits.key_required, traits.reconciled) == (key_required, reconciled)
    assert (traits.lost_lease, traits.settled_absent) == (lost_lease, absent)
    assert (traits.inconclusive, traits.automatic_retry) == (inconclusive, again)
    # Where a machine may not try again, neither may one person, and two decide the outcome.
    assert (traits.operator_retry, traits.approvers) == (again, 1 if again else 2)


def test_every_class_has_traits():
    assert TRAITS.keys() == set(EffectClass)
    assert parse_json(json.dumps([*EffectClass])) == [each.value for each in EffectClass]


WEBHOOK = {"source": "acme", "id": "/id", "state": "/state", "applied": ["paid"]}
LISTING = {
    "url": "https://a/all?from={since}",
    "items": "/data",
    "id": "/id",
    "state": "/state",
    "applied": ["paid"],
}


@pytest.mark.parametrize(
    ("evidence", "pointer"),
    [
        ({"source": "webhook"}, "/evidence/webhook"),
        ({"source": "plugin", "consistency": "eventual"}, "/evidence/plugin"),
        ({"source": "plugin", "plugin": {"name": "books"}}, "/evidence/consistency"),
        ({"source": "webhook", "webhook": WEBHOOK, "http": {"url": "http://a/{effect_id}"}},
         "/evidence/http"),
        ({"source": "webhook", "webhook": WEBHOOK | {"bind": {}}}, "/evidence/webhook/bind"),
        ({"source": "webhook", "webhook": WEBHOOK | {"applied": []}}, "/evidence/webhook/applied"),
        ({"source": "webhook", "webhook": WEBHOOK | {"id": "id"}}, "/evidence/webhook/id"),
        *(
            (http_evidence(9, listing=LISTING | changes), f"/evidence/listing{pointer}")
            for changes, pointer in (
                ({"url": "https://a/{effect_id}"}, "/url"),
                ({"url": "ftp://a/{since}"}, "/url"),
                ({"url": "https://me:pw@a/"}, "/url"),
                ({"items": "data"}, "/items"),
                ({"applied": []}, "/applied"),
                ({"where": {"kind": "paid"}}, "/where"),
                ({"where": {"/kind": None}}, "/where/~1kind"),
                ({"parameter": "a b"}, "/parameter"),
                ({"next": "/next", "last": "/id", "parameter": "after"}, ""),
                ({"last": "/id"}, "/parameter"),
                ({"bind": {"pointer": "/key", "equals": "run"}}, "/bind/equals"),
                ({"timeout_seconds": 31}, "/timeout_seconds"),
                ({"headers": {"A": "\n"}}, "/headers/A"),
                ({"absent_statuses": [404]}, "/absent_statuses"),
            )
        ),
    ],
)  # fmt: skip
def test_a_source_of_evidence_says_all_that_it_needs(evidence, pointer):
    with pytest.raises(InvalidContract) as refused:
        Contract.parse(a_contract(evidence=evidence))
    assert refused.value.pointer == pointer


def test_messages_may_be_all_the_evidence_or_come_beside_a_look_up():
    alone = Contract.parse(a_contract(evidence={"source": "webhook", "webhook": WEBHOOK})).evidence
    assert alone is not None
    assert alone.webhook is not None
    assert alone.webhook.answer.applied == ("paid",)
    assert (alone.http, alone.plugin, alone.timeout_seconds) == (None, None, 0)
    both = Contract.parse(a_contract(evidence=http_evidence(9, webhook=WEBHOOK))).evidence
    assert both is not None
    assert both.webhook is not None
    assert (both.source, both.webhook.id, both.timeout_seconds) == ("http", "/id", 2)
    plugin = {"name": "books", "timeout_seconds": 3}
    document = a_contract(
        evidence={"source": "plugin", "consistency": "eventual", "plugin": plugin}
    )
    plugged = Contract.parse(document).evidence
    assert plugged is not None
    assert plugged.timeout_seconds == 3


def test_a_listing_may_stand_beside_any_source():
    for evidence in (
        http_evidence(9, listing=LISTING),
        {"source": "webhook", "webhook": WEBHOOK, "listing": LISTING},
        {
            "source": "plugin",
            "consistency": "eventual",
            "plugin": {"name": "books"},
            "listing": LISTING,
        },
    ):
        parsed = Contract.parse(a_contract(evidence=evidence)).evidence
        assert parsed is not None
        listing = parsed.listing
        assert listing is not None
        assert (listing.http.url, listing.items, listing.id) == (LISTING["url"], "/data", "/id")
        assert (listing.next, listing.last, listing.parameter) == (None, None, None)
        assert (listing.answer.applied, listing.answer.bind) == (("paid",), None)


@pytest.mark.parametrize(
    ("effect_class", "listing", "pointer"),
    [
        ("PURE", LISTING, "/evidence/listing"),
        (
            "NON_RETRYABLE",
            LISTING | {"bind": {"pointer": "/key", "equals": "idempotency_key"}},
            "/evidence/listing/bind/equals",
        ),
    ],
)
def test_a_listing_fits_its_tool(effect_class, listing, pointer):
    evidence = {"source": "webhook", "webhook": WEBHOOK, "listing": listing}
    with pytest.raises(InvalidContract) as refused:
        Contract.parse(a_contract_of(effect_class, evidence=evidence))
    assert refused.value.pointer == pointer
