"""Fills a ledger by SQL, as its owner: closed effects, and open ones spread evenly among them.

Every key, foreign key and check holds for what is made. The triggers that hold each effect together
at commit cost as much as all the rest; they check the first effects, and are off for what is made
in the same way after them.
"""

from typing import Any, Final, LiteralString
from uuid import UUID

import psycopg

CHUNK: Final = 50_000
"""How many effects a transaction makes."""
CHECKED: Final = 5_000
"""How many effects, of the first ones, the triggers check too."""

# An effect in five stands in the same run. Each 10th effect was let through by a person, and an
# open one that is planned still waits for its.
_FRESH: Final[LiteralString] = """
CREATE TEMPORARY TABLE fresh ON COMMIT DROP AS
SELECT n, n %% 5 + 1 AS number, at, run, state, is_open, first_due,
       (substr(uuid_at(at)::text, 1, 14) || '7' || substr(digits, 1, 3)
        || '-8' || substr(digits, 4, 3) || '-' || substr(digits, 7, 12))::uuid AS run_id
  FROM (SELECT n, 'run-' || n / 5 AS run, md5('run-' || n / 5) AS digits,
               timestamptz %(since)s + (n / 5) * 5 * interval '1 second' * %(pace)s AS at,
               n %% %(every)s = 0 AS is_open,
               CASE WHEN n %% %(every)s <> 0 THEN 'SUCCEEDED'
                    ELSE (ARRAY['UNKNOWN', 'UNKNOWN', 'UNKNOWN', 'RETRYABLE', 'RETRYABLE',
                                'PLANNED', 'DISPATCHED', 'DISPATCHED', 'QUARANTINED',
                                'QUARANTINED'])[n / %(every)s %% 10 + 1] END AS state,
               n / %(every)s %% 10 = 0 AS first_due
          FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n) AS made
"""

_PATH: Final[LiteralString] = """
CREATE TEMPORARY TABLE path ON COMMIT DROP AS
SELECT * FROM (VALUES
    ('PLANNED', 0, 'T1', 'NEW', 'PLANNED'),
    ('DISPATCHED', 0, 'T1', 'NEW', 'PLANNED'),
    ('DISPATCHED', 1, 'T2', 'PLANNED', 'DISPATCHED'),
    ('SUCCEEDED', 0, 'T1', 'NEW', 'PLANNED'),
    ('SUCCEEDED', 1, 'T2', 'PLANNED', 'DISPATCHED'),
    ('SUCCEEDED', 2, 'T3', 'DISPATCHED', 'SUCCEEDED'),
    ('UNKNOWN', 0, 'T1', 'NEW', 'PLANNED'),
    ('UNKNOWN', 1, 'T2', 'PLANNED', 'DISPATCHED'),
    ('UNKNOWN', 2, 'T4', 'DISPATCHED', 'UNKNOWN'),
    ('RETRYABLE', 0, 'T1', 'NEW', 'PLANNED'),
    ('RETRYABLE', 1, 'T2', 'PLANNED', 'DISPATCHED'),
    ('RETRYABLE', 2, 'T4', 'DISPATCHED', 'RETRYABLE'),
    ('QUARANTINED', 0, 'T1', 'NEW', 'PLANNED'),
    ('QUARANTINED', 1, 'T2', 'PLANNED', 'DISPATCHED'),
    ('QUARANTINED', 2, 'T4', 'DISPATCHED', 'UNKNOWN'),
    ('QUARANTINED', 3, 'T5', 'UNKNOWN', 'RECONCILING'),
    ('QUARANTINED', 4, 'T6', 'RECONCILING', 'QUARANTINED')
) AS path (state, fence, transition, from_state, to_state)
"""

_ROWS: Final[tuple[LiteralString, ...]] = (
    """
    INSERT INTO effect_idem (tenant_id, kind, name, run_id, number)
    SELECT %(tenant)s, 'run', run, run_id, NULL::bigint FROM fresh GROUP BY run, run_id
     UNION ALL
    SELECT %(tenant)s, 'key', 'key-' || n, run_id, number FROM fresh
    """,
    # Half of what is closed used the old version; all that is open uses the new one.
    """
    INSERT INTO effect
           (run_id, number, tenant_id, run, identity, idem_key, tool, contract_id,
            presented_contract_id, contract_digest, effect_class, capabilities, credential_version,
            principal, origin, arguments, key_id, request_fingerprint, operation_fingerprint,
            planned_at)
    SELECT run_id, number, %(tenant)s, run, 'effect:' || n, 'key-' || n, %(tool)s, version, version,
           %(digest)s, 'IDEMPOTENT', ARRAY['invoice:write:default'], 1, 'agent', 'runtime',
           '{"customer_id":"C-42","amount_cents":1250}', %(key_id)s, sha256(n::text::bytea),
           sha256(n::text::bytea), at
      FROM fresh,
           LATERAL (SELECT CASE WHEN is_open OR n %% 2 = 0 THEN %(new)s::uuid
                                ELSE %(old)s::uuid END) AS used (version)
    """,
    """
    INSERT INTO event
           (run_id, number, fence, tenant_id, transition, from_state, to_state, previous_fence,
            attempt, actor, reason, at)
    SELECT run_id, number, fence, %(tenant)s, transition, from_state, to_state,
           nullif(fence - 1, -1), least(fence, 1), 'benchmark', 'made', at
      FROM fresh JOIN path USING (state)
    """,
    """
    INSERT INTO effect_attempt
           (run_id, number, attempt, tenant_id, fence, contract_id, effect_class, worker_id, nonce,
            credential_version, dispatched_at, lease_until)
    SELECT run_id, number, 1, %(tenant)s, 1, contract_id, effect_class, gen_random_uuid(),
           gen_random_uuid(), 1, at, at + interval '30 seconds'
      FROM fresh JOIN effect USING (run_id, number)
     WHERE state <> 'PLANNED'
    """,
    """
    INSERT INTO effect_outcome
           (run_id, number, revision, tenant_id, fence, status, result, provider_reference,
            decided_by, reason, finished_at)
    SELECT run_id, number, 1, %(tenant)s, 2, 'SUCCEEDED', '{"invoice_id":"i-1"}', 'i-' || n,
           'worker', 'reported', at
      FROM fresh
     WHERE NOT is_open
    """,
    # Every tenth is due; the others become due in an hour, or wait for a person.
    """
    INSERT INTO effect_open
           (run_id, number, tenant_id, contract_id, presented_contract_id, effect_class, state,
            fence, attempt, worker_id, nonce, due_at, first_dispatched_at, unknown_since, reason)
    SELECT run_id, number, %(tenant)s, %(new)s, %(new)s, 'IDEMPOTENT', state,
           (SELECT max(fence) FROM path WHERE path.state = fresh.state),
           CASE WHEN state = 'PLANNED' THEN 0 ELSE 1 END,
           CASE WHEN state = 'DISPATCHED' THEN gen_random_uuid() END,
           CASE WHEN state = 'DISPATCHED' THEN gen_random_uuid() END,
           CASE WHEN first_due THEN at
                WHEN state NOT IN ('PLANNED', 'QUARANTINED') THEN now() + interval '1 hour' END,
           CASE WHEN state <> 'PLANNED' THEN at END,
           CASE WHEN state IN ('UNKNOWN', 'QUARANTINED') THEN at END,
           'made'
      FROM fresh
     WHERE is_open
    """,
    """
    INSERT INTO approval
           (run_id, number, tenant_id, step, status, question, contract_digest, fingerprint,
            credential_version, requested_by, requested_at, expires_at, decided_by, decided_at,
            reason)
    SELECT run_id, number, %(tenant)s, CASE WHEN is_open THEN 0 ELSE 2 END,
           CASE WHEN is_open THEN 'pending' ELSE 'consumed' END, 'May it run?', contract_digest,
           request_fingerprint, 1, 'agent', at, at + interval '400 days',
           CASE WHEN NOT is_open THEN 'approver' END, CASE WHEN NOT is_open THEN at END,
           CASE WHEN NOT is_open THEN 'yes' END
      FROM fresh JOIN effect USING (run_id, number)
     WHERE CASE WHEN is_open THEN state = 'PLANNED' ELSE n %% 10 = 1 END
    """,
    """
    INSERT INTO approval_event
           (run_id, number, step, tenant_id, previous_step, from_status, to_status, actor, reason,
            at)
    SELECT run_id, number, taken.step, %(tenant)s, nullif(taken.step - 1, -1), from_status,
           to_status, 'approver', 'made', at
      FROM fresh
      JOIN approval USING (run_id, number)
      JOIN (VALUES (0, 'new', 'pending'), (1, 'pending', 'approved'), (2, 'approved', 'consumed'))
           AS taken (step, from_status, to_status) ON taken.step <= approval.step
    """,
)

_SWITCH: Final[LiteralString] = """
DO $$
DECLARE
    held  record;
BEGIN
    FOR held IN SELECT tgrelid::regclass AS relation, tgname FROM pg_trigger
                 WHERE tgfoid = 'effect_is_whole'::regproc LOOP
        EXECUTE format('ALTER TABLE %s {} TRIGGER %I', held.relation, held.tgname);
    END LOOP;
END
$$
"""
_OFF: Final = _SWITCH.replace("{}", "DISABLE")
_ON: Final = _SWITCH.replace("{}", "ENABLE")


async def fill(
    owner: psycopg.AsyncConnection[Any],
    facts: dict[str, Any],
    *,
    first: int,
    effects: int,
    opened: int,
) -> None:
    """Make effects with the numbers from ``first``, as many of them open, and renew statistics.

    Args:
        owner: A connection of the tables' owner, in autocommit, whose cursors bind at the client.
        facts: The tenant, the tool, its old and new version, the digest and the key's id; since
            when effects are made, and the seconds between two of them.
        first: The number of the first effect.
        effects: How many.
        opened: How many of them are open.
    """
    await owner.execute("SET synchronous_commit = off")
    end = first + effects
    while first < end:
        last = min(first + (CHUNK if first >= CHECKED else CHECKED - first), end) - 1
        values = facts | {"first": first, "last": last, "every": effects // opened}
        if first >= CHECKED:
            await owner.execute(_OFF.encode())
        async with owner.transaction():
            for statement in (_FRESH, _PATH, *_ROWS):
                await owner.execute(statement, values if "%(" in statement else None)
        first = last + 1
    await owner.execute(_ON.encode())
    await owner.execute("VACUUM ANALYZE")


async def some_closed(owner: psycopg.AsyncConnection[Any]) -> tuple[UUID, int]:
    """Return the id of a closed effect from the middle of the ledger."""
    found = await owner.execute("""
        SELECT run_id, number
          FROM effect_outcome
         WHERE run_id >= (SELECT uuid_at(min(planned_at) + (max(planned_at) - min(planned_at)) / 2)
                            FROM effect)
         ORDER BY run_id
         LIMIT 1
    """)
    row = await found.fetchone()
    assert row is not None
    return row[0], row[1]
