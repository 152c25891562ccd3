"""Compare, as a person sees it: a verdict, a call that fails, and what a person has to judge."""

import json
from pathlib import Path
from typing import Any

import pytest

OLD = {
    "type": "object",
    "properties": {"invoice": {"type": "string"}, "q": {"type": "string", "maxLength": 9}},
    "required": ["invoice"],
    "additionalProperties": False,
}
NEEDY = {
    **OLD,
    "properties": {**OLD["properties"], "currency": {"enum": ["USD", "EUR"]}},
    "required": ["invoice", "currency"],
}
WIDER = {**OLD, "properties": {**OLD["properties"], "note": {"type": "string"}}}


@pytest.fixture
def files(write_contract):
    """Write an old and a new contract; return their files."""

    def write(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
        return [
            write_contract("old.json", version="1.0", **old),
            write_contract("new.json", version="1.1", **new),
        ]

    return write


def words(text: str) -> str:
    return " ".join(text.split())


def test_two_files_need_no_service(run, wire, files):
    result = run("compare", *files({"input_schema": OLD}, {"input_schema": WIDER}))
    assert (result.exit_code, result.stderr) == (0, "")
    assert wire.requests == []
    lines = result.stdout.splitlines()
    assert lines[0] == "billing.send_invoice@1.0.0 → 1.1.0  compatible for declared values"
    assert "Version: a new minor one" in lines


def test_a_break_is_shown_as_a_call_that_used_to_work(run, files):
    result = run(
        "compare",
        *files({"input_schema": OLD}, {"input_schema": NEEDY}),
        env={"COLUMNS": "100"},
    )
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    at = lines.index("A call that worked with 1.0.0 and fails with 1.1.0:")
    tool, _, arguments = lines[at + 1].strip().partition(" ")
    assert (tool, json.loads(arguments)) == ("billing.send_invoice", {"invoice": ""})
    assert lines[at + 2 : at + 4] == [
        "  Invalid arguments for billing.send_invoice:",
        "    /currency: this property is required",
    ]
    assert "Version: a new major one, or a review" in lines
    assert any(line.startswith("input/currency") for line in lines)
    assert max(map(len, lines)) <= 100


def test_a_result_that_old_readers_refuse_is_shown(run, files):
    old = {"output_schema": {"type": "object", "properties": {"id": {"type": "string"}}}}
    new = {"output_schema": {"type": "object", "properties": {"id": {"type": ["string", "null"]}}}}
    result = run("compare", *files(old, new))
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    at = lines.index("A result that 1.1.0 may return and readers of 1.0.0 refuse:")
    assert json.loads(lines[at + 1]) == {"id": None}
    assert lines[at + 2].startswith("    /id: ")


def test_what_is_not_decided_ends_like_a_no(run, wire):
    undecided = {
        "verdict": "undecided",
        "obstacle": {"path": "/note", "keyword": "pattern", "reason": "too large"},
    }
    passage = {"declared": undecided, "any": undecided}
    wire.answer(
        "POST /v1/compare",
        {
            "compared": "schemas",
            "producer": "declared",
            "verdict": "undecided",
            "old_to_new": passage,
            "new_to_old": passage,
            "changes": [],
        },
    )
    result = run("compare", "tool@1.0", "tool@1.1")
    assert result.exit_code == 1
    assert "Not decided: old values, to the new schema" in result.stdout
    assert "stopped at /note (pattern): too large" in result.stdout


def test_a_change_of_effect_class_is_never_a_matter_of_review(run, files):
    result = run("compare", *files({}, {"effect_class": "NON_RETRYABLE"}))
    assert result.exit_code == 0
    assert "Version: a new major one" in result.stdout.splitlines()


def test_what_a_person_has_to_judge_is_said_once(run, files):
    result = run("compare", *files({}, {"description": "Sends one.", "capabilities": ["a:b:c"]}))
    out = words(result.stdout)
    assert out.count("A call may touch more: a:b:c.") == 1
    assert "Text that a model reads changes in /description" in out


def test_the_producer_decides_the_verdict(run, files):
    loose = {**OLD, "additionalProperties": True}
    opened = {key: each for key, each in OLD.items() if key != "additionalProperties"}
    wider = {key: each for key, each in WIDER.items() if key != "additionalProperties"}
    del loose
    both = files({"input_schema": opened}, {"input_schema": wider})
    assert run("compare", *both).exit_code == 0
    result = run("compare", *both, "--producer", "any")
    assert result.exit_code == 1
    assert "incompatible for any values" in result.stdout


def test_two_schemas_are_compared_by_themselves(run, wire, tmp_path):
    old, new = tmp_path / "old.json", tmp_path / "new.yaml"
    old.write_text(json.dumps({"type": "string", "maxLength": 3}))
    new.write_text("type: string\nmaxLength: 2\n")
    result = run("compare", str(old), str(new))
    assert (result.exit_code, wire.requests) == (1, [])
    lines = result.stdout.splitlines()
    at = lines.index("A value of the old schema that the new one refuses:")
    assert len(json.loads(lines[at + 1])) == 3
    answer = json.loads(run("compare", str(new), str(old), "--json").stdout)
    assert (answer["compared"], answer["verdict"]) == ("schemas", "compatible")


def test_json_has_the_witness_and_the_proofs(run, files):
    result = run("compare", *files({"input_schema": OLD}, {"input_schema": NEEDY}), "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    witness = answer["old_calls"]["declared"]["witness"]
    assert witness["value"] == {"invoice": ""}
    assert [each["pointer"] for each in witness["violations"]] == ["/currency"]
    assert answer["bump"] == "major"


def test_a_file_and_a_published_version_are_compared_by_the_service(run, wire, write_contract):
    file = write_contract(version="1.1")
    wire.refuse("POST /v1/compare", "tool_contract_not_found", status=404)
    result = run("compare", "billing.send_invoice@1.0", file, "--producer", "any")
    assert result.exit_code == 1
    assert "[tool_contract_not_found]" in result.stderr
    (route, body) = wire.sent()[0]
    assert route == "POST /v1/compare"
    assert (body["old"], body["producer"]) == ("billing.send_invoice@1.0", "any")
    assert body["new"]["version"] == "1.1"


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("a.json", '{"a": 1, "a": 2}', "invalid_contract"),
        ("a.yaml", "a: [", "invalid_contract"),
        ("a.json", '{"type": "strin"}', "invalid_contract"),
        ("a.json", '{"input_schema": {}}', "invalid_contract"),
        ("a.json", b"\xff", "invalid_contract"),
    ],
)
def test_a_file_that_is_neither_is_named(run, tmp_path, name, content, code, write_contract):
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = run("compare", write_contract("good.json"), str(file))
    assert result.exit_code == 1
    assert f"Error: {file}: " in result.stderr
    assert f"[{code}]" in result.stderr


def test_a_contract_is_no_schema(run, write_contract, tmp_path):
    schema = tmp_path / "schema.json"
    schema.write_text("{}")
    result = run("compare", write_contract(), str(schema))
    assert result.exit_code == 1
    assert "A contract is compared with a contract" in result.stderr


def test_the_readme_shows_what_the_command_says(run):
    root = Path(__file__).parents[3]
    readme = (root / "README.md").read_text(encoding="utf-8")
    _, _, rest = readme.partition("$ registry compare ")
    shown, _, _ = rest.partition("```")
    arguments, *lines = shown.splitlines()
    result = run("compare", *(str(root / file) for file in arguments.split()))
    assert len(lines) > 6
    assert set(lines) - {"..."} <= set(result.stdout.splitlines())
