"""The statements that write an effect, and the columns that read one."""

from typing import Final, LiteralString

OPEN_COLUMNS: Final[LiteralString] = """
    open.state, open.fence, open.attempt, open.reason, open.worker_id, open.nonce, open.due_at,
    open.deadline_at,
    open.first_dispatched_at, open.unknown_since, open.unaccounted, open.checks
"""
EFFECT_COLUMNS: Final[LiteralString] = """
    effect.run_id, effect.number, effect.run, effect.identity, effect.idem_key, effect.tool,
    contract.version,
    effect.contract_id, effect.presented_contract_id, effect.contract_digest, effect.effect_class,
    effect.capabilities, effect.credential_version, effect.principal, effect.origin,
    effect.arguments,
    effect.key_id, effect.request_fingerprint, effect.operation_fingerprint, effect.planned_at,
    effect.policy, effect.policy_revision, effect.supersedes
"""
INSERT_EFFECT: Final[LiteralString] = """
    INSERT INTO effect (
        run_id, number, tenant_id, run, identity, idem_key, tool, contract_id,
        presented_contract_id,
        contract_digest, effect_class, capabilities, credential_version, principal, origin,
        arguments, key_id,
        request_fingerprint, operation_fingerprint, planned_at, policy, policy_revision,
        supersedes)
    VALUES (
        %(run_id)s, %(number)s, current_tenant(), %(run)s, %(identity)s, %(idem_key)s, %(tool)s,
        %(contract_id)s, %(presented_contract_id)s, %(contract_digest)s, %(effect_class)s,
        %(capabilities)s,
        %(credential_version)s, %(principal)s, %(origin)s, %(arguments)s, %(key_id)s,
        %(request_fingerprint)s, %(operation_fingerprint)s, %(planned_at)s, %(policy)s,
        %(policy_revision)s, %(supersedes)s)
        ON CONFLICT (run_id, number) DO NOTHING
"""
INSERT_EVENT: Final[LiteralString] = """
    INSERT INTO event (
        run_id, number, fence, tenant_id, transition, from_state, to_state, previous_fence,
        attempt, actor, reason, at)
    VALUES (
        %(run_id)s, %(number)s, %(fence)s, current_tenant(), %(transition)s, %(from_state)s,
        %(to_state)s,
        nullif(%(fence)s - 1, -1), %(attempt)s, %(actor)s, %(reason)s, %(at)s)
"""
INSERT_OPEN: Final[LiteralString] = """
    INSERT INTO effect_open (
        run_id, number, tenant_id, contract_id, presented_contract_id, effect_class, state, fence,
        attempt, reason,
        worker_id, nonce, due_at, deadline_at, first_dispatched_at)
    VALUES (
        %(run_id)s, %(number)s, current_tenant(), %(contract_id)s, %(presented_contract_id)s,
        %(effect_class)s,
        %(state)s, %(fence)s, %(attempt)s, %(reason)s, %(worker_id)s, %(nonce)s, %(due_at)s,
        %(deadline_at)s,
        %(first_dispatched_at)s)
"""
UPDATE_OPEN: Final[LiteralString] = """
    UPDATE effect_open
       SET state = %(state)s, fence = %(fence)s, attempt = %(attempt)s, reason = %(reason)s,
           worker_id = %(worker_id)s, nonce = %(nonce)s, due_at = %(due_at)s,
           first_dispatched_at = %(first_dispatched_at)s, unknown_since = %(unknown_since)s,
           unaccounted = %(unaccounted)s, checks = %(checks)s
     WHERE run_id = %(run_id)s AND number = %(number)s
       AND fence = %(fence)s - 1 AND state = %(from_state)s
"""
DELETE_OPEN: Final[LiteralString] = """
    DELETE FROM effect_open
     WHERE run_id = %(run_id)s AND number = %(number)s
       AND fence = %(fence)s - 1 AND state = %(from_state)s
"""
INSERT_ATTEMPT: Final[LiteralString] = """
    INSERT INTO effect_attempt (
        run_id, number, attempt, tenant_id, fence, contract_id, effect_class, worker_id, nonce,
        credential_version, dispatched_at, lease_until)
    VALUES (
        %(run_id)s, %(number)s, %(attempt)s, current_tenant(), %(fence)s, %(contract_id)s,
        %(effect_class)s,
        %(worker_id)s, %(nonce)s, %(credential_version)s, %(at)s, %(due_at)s)
"""
INSERT_OUTCOME: Final[LiteralString] = """
    INSERT INTO effect_outcome (
        run_id, number, revision, tenant_id, fence, status, result, invalid_result, error_code,
        error_message,
        provider_reference, evidence_id, decided_by, reason, finished_at)
    SELECT %(run_id)s, %(number)s, coalesce(max(revision), 0) + 1, current_tenant(), %(fence)s,
    %(status)s,
           %(result)s, %(invalid_result)s, %(error_code)s, %(error_message)s,
           %(provider_reference)s,
           %(evidence_id)s, %(decided_by)s, %(reason)s, %(finished_at)s
      FROM effect_outcome
     WHERE run_id = %(run_id)s AND number = %(number)s
"""
