"""Every refusal has one code for ever, says what it is, and survives a process boundary."""

import pickle
import re

import pytest

from tallystick import errors
from tallystick.errors import LocalRefusal, Outage, Refusal, UnknownRefusal, error_for

CODES = [
    "tool_contract_not_found",
    "tool_schema_drift",
    "contract_retired",
    "contract_migrating",
    "contract_suspended",
    "signature_required",
    "capability_not_granted",
    "effect_class_mismatch",
    "credential_policy_changed",
    "mixed_versions",
    "invalid_arguments",
    "adapter_ambiguous",
    "not_found",
    "policy_blocked",
    "needs_human",
    "approval_stale",
    "approval_rejected",
    "approval_expired",
    "budget_exhausted",
    "effect_conflict",
    "effect_not_retryable",
    "fence_stale",
    "lease_expired",
    "contract_in_use",
    "invalid_result",
    "contract_exists",
    "invalid_contract",
    "signature_invalid",
    "invalid_policy",
    "name_reserved",
    "review_required",
    "illegal_transition",
    "too_large",
    "too_slow",
    "service_timeout",
    "service_unavailable",
    "token_conflict",
    "unauthenticated",
    "forbidden",
    "rate_limited",
    "registry_unavailable",
    "invalid_request",
]

LOCAL_CODES = [
    "signature_unsupported",
    "name_taken",
    "contract_changed",
    "lockfile_entry_missing",
    "lockfile_invalid",
    "lockfile_unwritable",
    "module_failed",
    "tool_failed",
    "tool_not_declared",
    "invalid_policy_table",
    "invalid_trace",
]


def leaves(*bases):
    return [
        leaf
        for leaf in vars(errors).values()
        if isinstance(leaf, type)
        and issubclass(leaf, bases)
        and leaf not in (*bases, UnknownRefusal)
    ]


LEAVES = leaves(Refusal, Outage)
LOCAL = leaves(LocalRefusal)


def test_every_documented_code_has_one_class():
    assert sorted(leaf.code for leaf in LEAVES) == sorted(CODES)
    assert sorted(leaf.code for leaf in LOCAL) == sorted(LOCAL_CODES)


@pytest.mark.parametrize("leaf", [*LEAVES, *LOCAL])
def test_class_is_a_fact_with_a_name(leaf):
    assert re.fullmatch("[a-z]+(_[a-z]+)*", leaf.code)
    assert re.match(r"[A-Z][^\n]*\.(\n|$)", leaf.__doc__), "the title is one sentence"


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_code_from_the_service_becomes_its_class_again(leaf):
    assert error_for(leaf.code) is leaf


@pytest.mark.parametrize("leaf", LOCAL)
def test_a_service_cannot_claim_what_only_this_machine_can_know(leaf):
    assert issubclass(error_for(leaf.code), UnknownRefusal)


@pytest.mark.parametrize("make", [*LEAVES, *LOCAL, error_for("code_of_a_newer_service")])
def test_error_keeps_its_facts_through_pickle(make):
    error = make("No such thing.", pointer="/a/0", facts={"count": 2})
    copy = pickle.loads(pickle.dumps(error))

    assert (copy.code, copy.retryable) == (error.code, error.retryable)
    assert (str(copy), copy.detail) == ("No such thing.", "No such thing.")
    assert (copy.pointer, copy.facts) == ("/a/0", {"count": 2})
    assert len({error, copy}) == 2


@pytest.mark.parametrize(
    ("code", "retryable"),
    [
        ("tool_schema_drift", False),
        ("contract_migrating", False),
        ("contract_suspended", True),
        ("needs_human", True),
        ("contract_in_use", True),
        ("rate_limited", True),
        ("service_unavailable", True),
        ("registry_unavailable", True),
    ],
)
def test_retryable_says_whether_trying_again_can_help(code, retryable):
    assert error_for(code).retryable is retryable


def test_unknown_code_is_a_refusal_that_keeps_it():
    error = error_for("quota_of_next_year")("No.")

    assert isinstance(error, UnknownRefusal)
    assert error.code == "quota_of_next_year"
    assert not error.retryable
