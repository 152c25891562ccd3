"""The ledger: one durable record of each effect, its open row, and append-only records of all that happened.

Every ledger table but ``effect_idem`` begins with the run, a UUIDv7: one key serves de-duplication, time
partitions and, on a distributed engine, the shard.

Revision ID: 0003
"""

from alembic import op

revision = "0003"
down_revision = "0002"

# The law as data: `ledger.transition.TRANSITIONS` says the same, and a test compares them.
_LEGAL_TRANSITION = """
CREATE TABLE legal_transition (
    transition  text NOT NULL,
    from_state  text NOT NULL,
    to_state    text NOT NULL,
    CONSTRAINT legal_transition_pkey PRIMARY KEY (transition, from_state, to_state)
);
INSERT INTO legal_transition (transition, from_state, to_state) VALUES
    ('T1', 'NEW', 'PLANNED'),
    ('T2', 'PLANNED', 'DISPATCHED'),
    ('T3', 'DISPATCHED', 'SUCCEEDED'),
    ('T3', 'DISPATCHED', 'FAILED'),
    ('T4', 'DISPATCHED', 'UNKNOWN'),
    ('T4', 'DISPATCHED', 'RETRYABLE'),
    ('T5', 'UNKNOWN', 'RECONCILING'),
    ('T6', 'RECONCILING', 'SUCCEEDED'),
    ('T6', 'RECONCILING', 'FAILED'),
    ('T6', 'RECONCILING', 'UNKNOWN'),
    ('T6', 'RECONCILING', 'RETRYABLE'),
    ('T6', 'RECONCILING', 'QUARANTINED'),
    ('T7', 'RETRYABLE', 'DISPATCHED'),
    ('T8', 'PLANNED', 'CANCELLED'),
    ('T8', 'RETRYABLE', 'CANCELLED'),
    ('T8', 'RETRYABLE', 'QUARANTINED'),
    ('T9', 'PLANNED', 'REFUSED'),
    ('T10', 'NEW', 'QUARANTINED'),
    ('T10', 'RETRYABLE', 'QUARANTINED'),
    ('T11', 'QUARANTINED', 'SUCCEEDED'),
    ('T11', 'QUARANTINED', 'FAILED'),
    ('T11', 'QUARANTINED', 'ABANDONED'),
    ('T11', 'QUARANTINED', 'RETRYABLE')
"""

# The caller's names for a run and for an effect, written with the effect that they lead to. Sharded by the
# name, not by the run.
_EFFECT_IDEM = """
CREATE TABLE effect_idem (
    tenant_id  uuid   NOT NULL,
    kind       text   NOT NULL,
    name       text   NOT NULL,
    run_id     uuid   NOT NULL,
    number     bigint,
    CONSTRAINT effect_idem_pkey PRIMARY KEY (tenant_id, kind, name),
    CONSTRAINT effect_idem_kind_is_known_check CHECK (kind IN ('run', 'key')),
    CONSTRAINT effect_idem_key_names_an_effect_check
        CHECK ((kind = 'key') = (number IS NOT NULL))
) PARTITION BY HASH (name)
"""

_EFFECT = """
CREATE TABLE effect (
    run_id                 uuid        NOT NULL,
    number                 bigint      NOT NULL,
    tenant_id              uuid        NOT NULL,
    run                    text        NOT NULL,
    identity               text        NOT NULL,
    idem_key               text,
    tool                   text        NOT NULL,
    contract_id            uuid        NOT NULL,
    presented_contract_id  uuid        NOT NULL,
    contract_digest        text        NOT NULL,
    effect_class           text        NOT NULL,
    capabilities           text[]      NOT NULL,
    credential_version     integer     NOT NULL,
    principal              text        NOT NULL,
    origin                 text        NOT NULL,
    arguments              text        NOT NULL,
    key_id                 text        NOT NULL,
    request_fingerprint    bytea       NOT NULL,
    operation_fingerprint  bytea       NOT NULL,
    planned_at             timestamptz NOT NULL,
    CONSTRAINT effect_pkey PRIMARY KEY (run_id, number),
    CONSTRAINT effect_run_id_number_tenant_id_contract_id_effect_class_key
        UNIQUE (run_id, number, tenant_id, contract_id, effect_class),
    CONSTRAINT effect_number_is_positive_check CHECK (number > 0),
    CONSTRAINT effect_class_is_known_check
        CHECK (effect_class IN ('PURE', 'IDEMPOTENT', 'REPLAYABLE', 'UNKNOWN', 'NON_RETRYABLE')),
    CONSTRAINT effect_origin_is_known_check CHECK (origin IN ('runtime', 'queue')),
    CONSTRAINT effect_fingerprints_are_sha256_check
        CHECK (length(request_fingerprint) = 32 AND length(operation_fingerprint) = 32)
) PARTITION BY RANGE (run_id)
"""

# Small and hot, and the only ledger table that is updated. The state stands in no index, so that a step
# which leaves due_at alone is a heap-only update.
_EFFECT_OPEN = """
CREATE TABLE effect_open (
    run_id                 uuid        NOT NULL,
    number                 bigint      NOT NULL,
    tenant_id              uuid        NOT NULL,
    contract_id            uuid        NOT NULL,
    presented_contract_id  uuid        NOT NULL,
    effect_class           text        NOT NULL,
    state                  text        NOT NULL,
    fence                  bigint      NOT NULL,
    attempt                integer     NOT NULL,
    worker_id              uuid,
    nonce                  uuid,
    due_at                 timestamptz,
    deadline_at            timestamptz,
    first_dispatched_at    timestamptz,
    unknown_since          timestamptz,
    unaccounted            integer     NOT NULL DEFAULT 0,
    checks                 integer     NOT NULL DEFAULT 0,
    reason                 text        NOT NULL,
    CONSTRAINT effect_open_pkey PRIMARY KEY (run_id, number),
    CONSTRAINT effect_open_effect_fkey
        FOREIGN KEY (run_id, number, tenant_id, contract_id, effect_class)
        REFERENCES effect (run_id, number, tenant_id, contract_id, effect_class),
    CONSTRAINT effect_open_state_is_open_check
        CHECK (state IN ('PLANNED', 'DISPATCHED', 'UNKNOWN', 'RECONCILING', 'RETRYABLE', 'QUARANTINED')),
    CONSTRAINT effect_open_counts_are_not_negative_check
        CHECK (fence >= 0 AND attempt >= 0 AND unaccounted >= 0 AND checks >= 0),
    CONSTRAINT effect_open_dispatched_has_an_owner_check
        CHECK ((state = 'DISPATCHED') = (worker_id IS NOT NULL) AND (worker_id IS NULL) = (nonce IS NULL)),
    CONSTRAINT effect_open_waiting_is_due_check
        CHECK (state NOT IN ('DISPATCHED', 'UNKNOWN', 'RECONCILING') OR due_at IS NOT NULL),
    CONSTRAINT effect_open_attempt_was_dispatched_check
        CHECK ((attempt > 0) = (first_dispatched_at IS NOT NULL)),
    CONSTRAINT effect_open_pure_is_never_unknown_check
        CHECK (effect_class <> 'PURE' OR state NOT IN ('UNKNOWN', 'RECONCILING')),
    CONSTRAINT effect_open_at_most_once_is_never_retryable_check
        CHECK (state <> 'RETRYABLE' OR effect_class NOT IN ('UNKNOWN', 'NON_RETRYABLE'))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);
CREATE INDEX effect_open_due_at_idx ON effect_open (due_at);
CREATE INDEX effect_open_contract_id_idx ON effect_open (contract_id);
CREATE INDEX effect_open_presented_contract_id_idx ON effect_open (presented_contract_id)
"""

# Arguments that the contract marks x-sensitive, encrypted, kept only while a new attempt may need them.
_EFFECT_PAYLOAD = """
CREATE TABLE effect_payload (
    run_id     uuid   NOT NULL,
    number     bigint NOT NULL,
    tenant_id  uuid   NOT NULL,
    key_id     text   NOT NULL,
    sealed     bytea  NOT NULL,
    CONSTRAINT effect_payload_pkey PRIMARY KEY (run_id, number)
)
"""

# Two rules stand here as keys: every attempt carries the recorded tenant, contract and class, and an
# effect of a class that may run at most once has no second attempt.
_EFFECT_ATTEMPT = """
CREATE TABLE effect_attempt (
    run_id              uuid        NOT NULL,
    number              bigint      NOT NULL,
    attempt             integer     NOT NULL,
    tenant_id           uuid        NOT NULL,
    fence               bigint      NOT NULL,
    contract_id         uuid        NOT NULL,
    effect_class        text        NOT NULL,
    worker_id           uuid        NOT NULL,
    nonce               uuid        NOT NULL,
    credential_version  integer     NOT NULL,
    dispatched_at       timestamptz NOT NULL,
    lease_until         timestamptz NOT NULL,
    CONSTRAINT effect_attempt_pkey PRIMARY KEY (run_id, number, attempt),
    CONSTRAINT effect_attempt_effect_fkey
        FOREIGN KEY (run_id, number, tenant_id, contract_id, effect_class)
        REFERENCES effect (run_id, number, tenant_id, contract_id, effect_class),
    CONSTRAINT effect_attempt_is_positive_check CHECK (attempt >= 1),
    CONSTRAINT effect_attempt_at_most_once_check
        CHECK (attempt = 1 OR effect_class NOT IN ('UNKNOWN', 'NON_RETRYABLE'))
) PARTITION BY RANGE (run_id)
"""

_EFFECT_EVIDENCE = """
CREATE TABLE effect_evidence (
    run_id              uuid        NOT NULL,
    number              bigint      NOT NULL,
    evidence_id         uuid        NOT NULL,
    tenant_id           uuid        NOT NULL,
    fence               bigint      NOT NULL,
    source              text        NOT NULL,
    answer              text        NOT NULL,
    provider_reference  text,
    observed_at         timestamptz NOT NULL,
    received_at         timestamptz NOT NULL,
    detail              text        NOT NULL,
    CONSTRAINT effect_evidence_pkey PRIMARY KEY (run_id, number, evidence_id),
    CONSTRAINT effect_evidence_answer_is_known_check
        CHECK (answer IN ('applied', 'absent', 'in_progress', 'rejected', 'unavailable', 'contradicts'))
) PARTITION BY RANGE (run_id)
"""

# The fence of an effect is the number of its last event: it rises by one with every step. Each event names
# its predecessor by key, so that no step can start from a state that the effect was not in.
_EVENT = """
CREATE TABLE event (
    run_id          uuid        NOT NULL,
    number          bigint      NOT NULL,
    fence           bigint      NOT NULL,
    tenant_id       uuid        NOT NULL,
    transition      text        NOT NULL,
    from_state      text        NOT NULL,
    to_state        text        NOT NULL,
    previous_fence  bigint,
    attempt         integer     NOT NULL,
    actor           text        NOT NULL,
    reason          text        NOT NULL,
    at              timestamptz NOT NULL,
    CONSTRAINT event_pkey PRIMARY KEY (run_id, number, fence),
    CONSTRAINT event_run_id_number_fence_to_state_key UNIQUE (run_id, number, fence, to_state),
    CONSTRAINT event_is_legal_fkey FOREIGN KEY (transition, from_state, to_state)
        REFERENCES legal_transition (transition, from_state, to_state),
    CONSTRAINT event_follows_fkey FOREIGN KEY (run_id, number, previous_fence, from_state)
        REFERENCES event (run_id, number, fence, to_state),
    CONSTRAINT event_first_is_new_check
        CHECK ((fence = 0) = (from_state = 'NEW') AND (fence = 0) = (previous_fence IS NULL)),
    CONSTRAINT event_fence_rises_by_one_check CHECK (fence >= 0 AND previous_fence = fence - 1)
) PARTITION BY RANGE (run_id)
"""

# An outcome says what the event of its fence says, and each event has one: a result never changes
# without a step.
_EFFECT_OUTCOME = """
CREATE TABLE effect_outcome (
    run_id              uuid        NOT NULL,
    number              bigint      NOT NULL,
    revision            integer     NOT NULL,
    tenant_id           uuid        NOT NULL,
    fence               bigint      NOT NULL,
    status              text        NOT NULL,
    result              text,
    invalid_result      jsonb,
    error_code          text,
    error_message       text,
    provider_reference  text,
    evidence_id         uuid,
    decided_by          text        NOT NULL,
    reason              text        NOT NULL,
    finished_at         timestamptz NOT NULL,
    CONSTRAINT effect_outcome_pkey PRIMARY KEY (run_id, number, revision),
    CONSTRAINT effect_outcome_run_id_number_fence_key UNIQUE (run_id, number, fence),
    CONSTRAINT effect_outcome_event_fkey FOREIGN KEY (run_id, number, fence, status)
        REFERENCES event (run_id, number, fence, to_state),
    CONSTRAINT effect_outcome_revision_is_positive_check CHECK (revision >= 1),
    CONSTRAINT effect_outcome_status_is_closed_check
        CHECK (status IN ('SUCCEEDED', 'FAILED', 'REFUSED', 'CANCELLED', 'ABANDONED'))
) PARTITION BY RANGE (run_id)
"""

_RUN_TOOL = """
CREATE TABLE run_tool (
    run_id       uuid NOT NULL,
    tool         text NOT NULL,
    tenant_id    uuid NOT NULL,
    contract_id  uuid NOT NULL,
    CONSTRAINT run_tool_pkey PRIMARY KEY (run_id, tool)
) PARTITION BY RANGE (run_id)
"""

_WORKER_SESSION = """
CREATE TABLE worker_session (
    tenant_id     uuid        NOT NULL,
    worker_id     uuid        NOT NULL,
    label         text        NOT NULL DEFAULT '',
    started_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    heartbeat_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT worker_session_pkey PRIMARY KEY (tenant_id, worker_id)
)
"""

# Checked at commit: an effect, its last event, and its open row or current outcome are there, of one
# tenant, and say the same; and what is dispatched has its attempt. A belt over the braces: the service
# needs no trigger to be right.
_WHOLE = """
CREATE FUNCTION effect_is_whole() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    it         record;
    owner      uuid;
    last       record;
    opened     record;
    closed     record;
BEGIN
    IF TG_OP = 'DELETE' THEN it := OLD; ELSE it := NEW; END IF;
    SELECT tenant_id INTO owner FROM effect WHERE run_id = it.run_id AND number = it.number;
    SELECT fence, to_state INTO last FROM event
     WHERE run_id = it.run_id AND number = it.number ORDER BY fence DESC LIMIT 1;
    SELECT fence, state, attempt INTO opened FROM effect_open
     WHERE run_id = it.run_id AND number = it.number;
    SELECT fence, status INTO closed FROM effect_outcome
     WHERE run_id = it.run_id AND number = it.number ORDER BY revision DESC LIMIT 1;
    IF owner IS DISTINCT FROM it.tenant_id THEN
        RAISE EXCEPTION 'effect %.% is not recorded for this tenant', it.run_id, it.number
            USING ERRCODE = 'check_violation', CONSTRAINT = 'effect_is_whole';
    ELSIF last IS NULL THEN
        RAISE EXCEPTION 'effect %.% has rows but no event', it.run_id, it.number
            USING ERRCODE = 'check_violation', CONSTRAINT = 'effect_is_whole';
    ELSIF opened IS NOT NULL THEN
        IF opened.fence <> last.fence OR opened.state <> last.to_state THEN
            RAISE EXCEPTION 'effect %.% is open as % but its last event says %',
                it.run_id, it.number, opened.state, last.to_state
                USING ERRCODE = 'check_violation', CONSTRAINT = 'effect_is_whole';
        ELSIF opened.state = 'DISPATCHED' AND NOT EXISTS (
            SELECT FROM effect_attempt
             WHERE run_id = it.run_id AND number = it.number
               AND attempt = opened.attempt AND fence = opened.fence) THEN
            RAISE EXCEPTION 'effect %.% is dispatched without an attempt', it.run_id, it.number
                USING ERRCODE = 'check_violation', CONSTRAINT = 'effect_is_whole';
        END IF;
    ELSIF closed IS NULL OR closed.fence <> last.fence OR closed.status <> last.to_state THEN
        RAISE EXCEPTION 'effect %.% is not open and has no outcome for its last event, %',
            it.run_id, it.number, last.to_state
            USING ERRCODE = 'check_violation', CONSTRAINT = 'effect_is_whole';
    END IF;
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER effect_open_is_whole
    AFTER INSERT OR UPDATE OR DELETE ON effect_open
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION effect_is_whole()
"""

# Months of UUIDv7 time, made ahead. The service's role may ask for them but not make tables of its own.
_PARTITIONS = """
CREATE FUNCTION uuid_at(moment timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE
AS $$
    SELECT (lpad(to_hex((extract(epoch FROM moment) * 1000)::bigint), 12, '0')
            || '00000000000000000000')::uuid
$$;
CREATE FUNCTION ensure_partitions(months_ahead integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET timezone = 'UTC'
AS $$
DECLARE
    made    integer := 0;
    month   timestamptz;
    parent  text;
    child   text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('tallystick.ensure_partitions'));
    FOR ahead IN -1 .. least(months_ahead, 120) LOOP
        month := date_trunc('month', now()) + make_interval(months => ahead);
        FOREACH parent IN ARRAY ARRAY[
            'effect', 'effect_attempt', 'effect_evidence', 'event', 'effect_outcome', 'run_tool'
        ] LOOP
            child := parent || to_char(month, '_YYYY_MM');
            IF to_regclass(child) IS NULL THEN
                EXECUTE format(
                    'CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)',
                    child, parent, uuid_at(month), uuid_at(month + interval '1 month'));
                IF parent IN ('effect', 'event', 'effect_outcome') THEN
                    EXECUTE format(
                        'CREATE CONSTRAINT TRIGGER %I AFTER INSERT ON %I'
                        ' DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION effect_is_whole()',
                        child || '_is_whole', child);
                END IF;
                made := made + 1;
            END IF;
        END LOOP;
    END LOOP;
    RETURN made;
END
$$;
SELECT ensure_partitions(3)
"""

# Row-level security hides other tenants' effects, and a version must not go while any of them refers to it:
# this definer-rights function sees all, and tells counts only, of a contract of the asking tenant.
_REFERENCES = """
CREATE FUNCTION contract_references(contract uuid)
RETURNS TABLE (kind text, state text, many bigint, earliest timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT 'effects', found.state, count(*), min(found.due_at)
      FROM (SELECT open.state, open.due_at
              FROM effect_open AS open
             WHERE open.contract_id = contract OR open.presented_contract_id = contract
             LIMIT 1000) AS found
     WHERE EXISTS (SELECT FROM contract AS mine
                    WHERE mine.contract_id = contract AND mine.tenant_id = current_tenant())
     GROUP BY found.state
     UNION ALL
    SELECT 'pins', NULL, count(*), max(pin.expires_at)
      FROM pin
     WHERE pin.contract_id = contract
       AND pin.expires_at > clock_timestamp()
       AND EXISTS (SELECT FROM contract AS mine
                    WHERE mine.contract_id = contract AND mine.tenant_id = current_tenant())
    HAVING count(*) > 0
$$
"""

_TENANTS_DUE = """
CREATE FUNCTION tenants_due(most integer)
RETURNS TABLE (tenant_id uuid, tenant text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT tenant.tenant_id, tenant.slug
      FROM tenant
     WHERE EXISTS (SELECT FROM (SELECT due.tenant_id
                                  FROM effect_open AS due
                                 WHERE due.due_at <= clock_timestamp()
                                 ORDER BY due.due_at
                                 LIMIT 1000) AS due
                    WHERE due.tenant_id = tenant.tenant_id)
     LIMIT most
$$
"""

_TABLES = (
    "effect_idem",
    "effect",
    "effect_open",
    "effect_payload",
    "effect_attempt",
    "effect_evidence",
    "event",
    "effect_outcome",
    "run_tool",
    "worker_session",
)

_PRIVILEGES = """
GRANT SELECT ON legal_transition TO tallystick_service;
GRANT SELECT, INSERT ON effect_idem, effect, effect_attempt, effect_evidence, effect_outcome, event,
    run_tool TO tallystick_service;
GRANT SELECT, INSERT, DELETE, UPDATE (state, fence, attempt, worker_id, nonce, due_at, first_dispatched_at,
    unknown_since, unaccounted, checks, reason) ON effect_open TO tallystick_service;
GRANT SELECT, INSERT, DELETE ON effect_payload TO tallystick_service;
GRANT SELECT, INSERT, UPDATE (label, heartbeat_at) ON worker_session TO tallystick_service;
REVOKE ALL ON FUNCTION ensure_partitions(integer), contract_references(uuid), tenants_due(integer),
    effect_is_whole() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ensure_partitions(integer), contract_references(uuid), tenants_due(integer)
    TO tallystick_service
"""


def upgrade() -> None:
    for statement in (
        _LEGAL_TRANSITION,
        _EFFECT_IDEM,
        _EFFECT,
        _EFFECT_OPEN,
        _EFFECT_PAYLOAD,
        _EFFECT_ATTEMPT,
        _EFFECT_EVIDENCE,
        _EVENT,
        _EFFECT_OUTCOME,
        _RUN_TOOL,
        _WORKER_SESSION,
        _WHOLE,
        _PARTITIONS,
        _REFERENCES,
        _TENANTS_DUE,
        _PRIVILEGES,
    ):
        op.execute(statement)
    for shard in range(8):
        op.execute(
            f"CREATE TABLE effect_idem_{shard} PARTITION OF effect_idem"
            f" FOR VALUES WITH (MODULUS 8, REMAINDER {shard})"
        )
    for table in _TABLES:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY tenant_isolation ON {table} USING (tenant_id = current_tenant())"
        )


def downgrade() -> None:
    for function in (
        "tenants_due(integer)",
        "contract_references(uuid)",
        "ensure_partitions(integer)",
        "uuid_at(timestamptz)",
    ):
        op.execute(f"DROP FUNCTION {function}")
    for table in reversed(_TABLES):
        op.execute(f"DROP TABLE {table} CASCADE")
    op.execute("DROP FUNCTION effect_is_whole()")
    op.execute("DROP TABLE legal_transition")
