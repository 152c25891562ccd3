"""Retire and roll back, as a person sees them."""

import json

TOOL = "billing.send_invoice@1.0"
RETIRE = "POST /v1/rollouts/billing.send_invoice/1.0/retire"
RETIRED = {"name": "billing.send_invoice", "version": "1.0.0", "state": "RETIRED"}
FACTS = {
    "state": "MIGRATING",
    "closed_at": "2026-01-02T03:04:05Z",
    "earliest": None,
    "blockers": [
        {
            "kind": "effects",
            "state": "UNKNOWN",
            "count": 3,
            "clears": "the reconciler, or a person",
            "earliest": None,
        },
        {
            "kind": "leases",
            "count": 1,
            "clears": "they run out",
            "earliest": "2026-01-02T03:05:05Z",
        },
    ],
}


def test_a_refusal_is_the_table_of_what_is_in_the_way(run, wire):
    wire.refuse(RETIRE, "contract_in_use", facts=FACTS)
    result = run("retire", TOOL)
    assert result.exit_code == 1
    rows = [" ".join(line.split()) for line in result.stderr.splitlines()]
    assert "What Count What clears it Earliest" in rows
    assert "effects UNKNOWN 3 the reconciler, or a person" in rows
    assert "leases 1 they run out 2026-01-02 03:05:05Z" in rows
    assert any("--wait" in row for row in rows)


def test_a_program_gets_the_blockers_as_facts(run, wire):
    wire.refuse(RETIRE, "contract_in_use", facts=FACTS)
    result = run("retire", TOOL, "--json")
    assert result.stdout == ""
    assert json.loads(result.stderr)["facts"] == FACTS


def test_wait_asks_until_it_is_drained(run, wire):
    wire.refuse(RETIRE, "contract_in_use", facts=FACTS)
    wire.refuse(RETIRE, "contract_in_use", facts={**FACTS, "blockers": FACTS["blockers"][1:]})
    wire.answer(RETIRE, RETIRED)
    result = run("retire", TOOL, "--wait", "--reason", "replaced by 2.0", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == RETIRED
    assert result.stderr == ""
    assert wire.sent() == [(RETIRE, {"reason": "replaced by 2.0"})] * 3


def test_a_wait_that_is_over_is_the_last_refusal(run, wire):
    wire.refuse(RETIRE, "contract_in_use", facts=FACTS)
    result = run("retire", TOOL, "--wait", "--timeout", "0")
    assert result.exit_code == 1
    assert "the reconciler, or a person" in result.stderr


def test_a_wait_ends_with_any_other_refusal(run, wire):
    wire.refuse(RETIRE, "contract_in_use", facts=FACTS)
    wire.refuse(RETIRE, "tool_contract_not_found", status=404)
    result = run("retire", TOOL, "--wait")
    assert result.exit_code == 1
    assert "[tool_contract_not_found]" in result.stderr


def test_rollback_says_the_state(run, wire):
    wire.answer(RETIRE.replace("retire", "rollback"), {**RETIRED, "state": "ACTIVE"})
    result = run("rollback", TOOL)
    assert result.stdout == "billing.send_invoice@1.0.0 is ACTIVE\n"
