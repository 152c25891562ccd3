"""The gates: the policy that an effect was planned under, what a run has done, budgets, approvals, refusals.

Revision ID: 0009
"""

from alembic import op

revision = "0009"
down_revision = "0008"

_EFFECT_POLICY = """
ALTER TABLE effect
    ADD COLUMN policy text,
    ADD COLUMN policy_revision integer,
    ADD CONSTRAINT effect_policy_is_whole_check CHECK ((policy IS NULL) = (policy_revision IS NULL));
GRANT INSERT (policy, policy_revision) ON effect TO tallystick_service;
ALTER TABLE effect DROP CONSTRAINT effect_origin_is_known_check;
ALTER TABLE effect
    ADD CONSTRAINT effect_origin_is_known_check CHECK (origin IN ('runtime', 'queue', 'look_up')),
    ADD CONSTRAINT effect_look_up_is_pure_check CHECK (origin <> 'look_up' OR effect_class = 'PURE')
"""

_EFFECT_BEFORE = """
ALTER TABLE effect DROP CONSTRAINT effect_origin_is_known_check, DROP CONSTRAINT effect_look_up_is_pure_check;
ALTER TABLE effect ADD CONSTRAINT effect_origin_is_known_check CHECK (origin IN ('runtime', 'queue'));
ALTER TABLE effect DROP COLUMN policy, DROP COLUMN policy_revision
"""

# On whose behalf a run acts: the application's word, given once.
_RUN_SUBJECT = """
CREATE TABLE run_subject (
    run_id     uuid        NOT NULL,
    tenant_id  uuid        NOT NULL,
    subject    text        NOT NULL,
    set_by     text        NOT NULL,
    set_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT run_subject_pkey PRIMARY KEY (run_id)
)
"""

# The row that a run's decisions wait for one another at; what a decision rests on is read after it is held.
_RUN_STATE = """
CREATE TABLE run_state (
    run_id     uuid   NOT NULL,
    tenant_id  uuid   NOT NULL,
    decisions  bigint NOT NULL DEFAULT 0,
    CONSTRAINT run_state_pkey PRIMARY KEY (run_id)
) WITH (fillfactor = 50)
"""

_RUN_TALLY = """
CREATE TABLE run_tally (
    run_id      uuid    NOT NULL,
    tool        text    NOT NULL,
    tenant_id   uuid    NOT NULL,
    dispatched  integer NOT NULL DEFAULT 0,
    succeeded   integer NOT NULL DEFAULT 0,
    CONSTRAINT run_tally_pkey PRIMARY KEY (run_id, tool),
    CONSTRAINT run_tally_counts_are_not_negative_check CHECK (dispatched >= 0 AND succeeded >= 0)
) WITH (fillfactor = 50)
"""

# A fact is one revision's: what another one captured under the same name may mean something else.
_RUN_FACT = """
CREATE TABLE run_fact (
    run_id           uuid        NOT NULL,
    policy           text        NOT NULL,
    policy_revision  integer     NOT NULL,
    name             text        NOT NULL,
    key              text        NOT NULL,
    tenant_id        uuid        NOT NULL,
    value            text        NOT NULL,
    number           bigint      NOT NULL,
    captured_at      timestamptz NOT NULL,
    CONSTRAINT run_fact_pkey PRIMARY KEY (run_id, policy, policy_revision, name, key)
)
"""

# What all runs of a tenant share is given out in slices, one for each run, so that they need not wait for one
# another. A slice of a limit of one run is all that the run has, and no pool stands behind it. A slice says which
# revision of the policy gave it: the next one may have less to give.
_BUDGET = """
CREATE TABLE budget_pool (
    tenant_id     uuid        NOT NULL,
    policy        text        NOT NULL,
    name          text        NOT NULL,
    window_start  timestamptz NOT NULL,
    granted       numeric     NOT NULL DEFAULT 0,
    most          numeric     NOT NULL,
    CONSTRAINT budget_pool_pkey PRIMARY KEY (tenant_id, policy, name, window_start),
    CONSTRAINT budget_pool_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (tenant_id),
    CONSTRAINT budget_pool_is_not_overdrawn_check CHECK (granted >= 0 AND granted <= most)
);
CREATE TABLE budget_slice (
    run_id           uuid        NOT NULL,
    policy           text        NOT NULL,
    name             text        NOT NULL,
    scope            text        NOT NULL,
    window_start     timestamptz NOT NULL,
    tenant_id        uuid        NOT NULL,
    policy_revision  integer     NOT NULL,
    granted          numeric     NOT NULL DEFAULT 0,
    used             numeric     NOT NULL DEFAULT 0,
    CONSTRAINT budget_slice_pkey PRIMARY KEY (run_id, policy, name, scope, window_start),
    CONSTRAINT budget_slice_scope_is_known_check CHECK (scope IN ('run', 'tenant')),
    CONSTRAINT budget_slice_is_not_overspent_check CHECK (used >= 0 AND used <= granted)
);
CREATE INDEX budget_slice_tenant_id_policy_name_window_start_idx
    ON budget_slice (tenant_id, policy, name, window_start)
"""

# A person's word on one effect, of which there is one at most: it has the effect's key. What it is bound to
# is what the effect was recorded with, and who asked may not answer.
_APPROVAL = """
CREATE TABLE approval (
    run_id              uuid        NOT NULL,
    number              bigint      NOT NULL,
    tenant_id           uuid        NOT NULL,
    step                integer     NOT NULL DEFAULT 0,
    status              text        NOT NULL DEFAULT 'pending',
    question            text        NOT NULL,
    rule                text,
    contract_digest     text        NOT NULL,
    fingerprint         bytea       NOT NULL,
    credential_version  integer     NOT NULL,
    policy              text,
    policy_revision     integer,
    requested_by        text        NOT NULL,
    requested_at        timestamptz NOT NULL,
    expires_at          timestamptz NOT NULL,
    decided_by          text,
    decided_at          timestamptz,
    reason              text,
    CONSTRAINT approval_pkey PRIMARY KEY (run_id, number),
    CONSTRAINT approval_run_id_number_fkey FOREIGN KEY (run_id, number) REFERENCES effect (run_id, number),
    CONSTRAINT approval_takes_two_people_check CHECK (decided_by <> requested_by),
    CONSTRAINT approval_decision_is_whole_check
        CHECK ((decided_by IS NULL) = (decided_at IS NULL)
               AND (decided_by IS NOT NULL OR status NOT IN ('approved', 'rejected', 'consumed'))
               AND (decided_by IS NULL OR status <> 'pending')),
    CONSTRAINT approval_expires_after_it_was_requested_check CHECK (expires_at > requested_at)
);
CREATE INDEX approval_tenant_id_status_requested_at_idx ON approval (tenant_id, status, requested_at)
"""

# Each step follows the one before it by key, and each pair is legal: nothing is consumed that was not
# approved, and nothing twice.
_APPROVAL_EVENT = """
CREATE TABLE approval_event (
    run_id         uuid        NOT NULL,
    number         bigint      NOT NULL,
    step           integer     NOT NULL,
    tenant_id      uuid        NOT NULL,
    previous_step  integer,
    from_status    text        NOT NULL,
    to_status      text        NOT NULL,
    actor          text        NOT NULL,
    reason         text        NOT NULL,
    at             timestamptz NOT NULL,
    CONSTRAINT approval_event_pkey PRIMARY KEY (run_id, number, step),
    CONSTRAINT approval_event_run_id_number_step_to_status_key UNIQUE (run_id, number, step, to_status),
    CONSTRAINT approval_event_approval_fkey FOREIGN KEY (run_id, number) REFERENCES approval (run_id, number),
    CONSTRAINT approval_event_follows_fkey FOREIGN KEY (run_id, number, previous_step, from_status)
        REFERENCES approval_event (run_id, number, step, to_status),
    CONSTRAINT approval_event_first_is_new_check
        CHECK ((step = 0) = (from_status = 'new') AND (step = 0) = (previous_step IS NULL)),
    CONSTRAINT approval_event_step_rises_by_one_check CHECK (step >= 0 AND previous_step = step - 1),
    CONSTRAINT approval_event_is_legal_check
        CHECK ((from_status, to_status) IN (
            ('new', 'pending'),
            ('pending', 'approved'), ('pending', 'rejected'), ('pending', 'expired'), ('pending', 'stale'),
            ('approved', 'consumed'), ('approved', 'expired'), ('approved', 'stale')))
);
ALTER TABLE approval ADD CONSTRAINT approval_event_fkey FOREIGN KEY (run_id, number, step, status)
    REFERENCES approval_event (run_id, number, step, to_status) DEFERRABLE INITIALLY DEFERRED
"""

_APPROVAL_HOLDS = """
CREATE FUNCTION approval_is_bound() RETURNS trigger
LANGUAGE plpgsql SET search_path = public, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM effect
         WHERE run_id = NEW.run_id AND number = NEW.number AND tenant_id = NEW.tenant_id
           AND (contract_digest, request_fingerprint, credential_version, principal)
             = (NEW.contract_digest, NEW.fingerprint, NEW.credential_version, NEW.requested_by)
           AND (policy, policy_revision) IS NOT DISTINCT FROM (NEW.policy, NEW.policy_revision)) THEN
        RAISE EXCEPTION 'approval %.% is not one of its effect', NEW.run_id, NEW.number
            USING ERRCODE = 'check_violation', CONSTRAINT = 'approval_is_bound';
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER approval_is_bound
    AFTER INSERT ON approval FOR EACH ROW EXECUTE FUNCTION approval_is_bound();
CREATE FUNCTION approval_goes_on() RETURNS trigger
LANGUAGE plpgsql SET search_path = public, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'approval %.% is %', OLD.run_id, OLD.number, OLD.status
        USING ERRCODE = 'check_violation', CONSTRAINT = 'approval_goes_on';
END
$$;
CREATE TRIGGER approval_goes_on
    BEFORE UPDATE ON approval FOR EACH ROW
    WHEN (NEW.step <> OLD.step + 1
          OR OLD.decided_by IS NOT NULL
             AND (NEW.decided_by, NEW.decided_at, NEW.reason)
                 IS DISTINCT FROM (OLD.decided_by, OLD.decided_at, OLD.reason))
    EXECUTE FUNCTION approval_goes_on();
REVOKE ALL ON FUNCTION approval_is_bound(), approval_goes_on() FROM PUBLIC
"""

# What was done is not undone, so that no budget fills up again and no call was never made.
_COUNTS_RISE = """
CREATE FUNCTION counts_only_rise() RETURNS trigger
LANGUAGE plpgsql SET search_path = public, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'what run % did would become less', OLD.run_id
        USING ERRCODE = 'check_violation', CONSTRAINT = 'counts_only_rise';
END
$$;
CREATE TRIGGER counts_only_rise
    BEFORE UPDATE ON run_tally FOR EACH ROW
    WHEN (NEW.dispatched < OLD.dispatched OR NEW.succeeded < OLD.succeeded)
    EXECUTE FUNCTION counts_only_rise();
CREATE TRIGGER counts_only_rise
    BEFORE UPDATE ON budget_slice FOR EACH ROW
    WHEN (NEW.used < OLD.used)
    EXECUTE FUNCTION counts_only_rise();
REVOKE ALL ON FUNCTION counts_only_rise() FROM PUBLIC
"""

# The trace of a run: what it was told, and why in truth.
_GATE_REFUSAL = """
CREATE TABLE gate_refusal (
    run_id           uuid        NOT NULL,
    refusal_id       uuid        NOT NULL,
    tenant_id        uuid        NOT NULL,
    number           bigint,
    tool             text        NOT NULL,
    version          text        NOT NULL,
    gate             text        NOT NULL,
    code             text        NOT NULL,
    true_code        text        NOT NULL,
    message          text        NOT NULL,
    rule             text,
    policy           text,
    policy_revision  integer,
    principal        text        NOT NULL,
    refused_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT gate_refusal_pkey PRIMARY KEY (run_id, refusal_id),
    CONSTRAINT gate_refusal_gate_is_known_check
        CHECK (gate IN ('contract', 'arguments', 'permission', 'policy'))
)
"""

_TABLES = (
    "run_subject",
    "run_state",
    "run_tally",
    "run_fact",
    "budget_pool",
    "budget_slice",
    "approval",
    "approval_event",
    "gate_refusal",
)

_PRIVILEGES = """
GRANT SELECT, INSERT ON run_subject, run_state, run_tally, run_fact, budget_pool, budget_slice, approval,
    approval_event, gate_refusal TO tallystick_service;
GRANT UPDATE (decisions) ON run_state TO tallystick_service;
GRANT UPDATE (dispatched, succeeded) ON run_tally TO tallystick_service;
GRANT UPDATE (value, number, captured_at) ON run_fact TO tallystick_service;
GRANT UPDATE (granted, most) ON budget_pool TO tallystick_service;
GRANT UPDATE (policy_revision, granted, used) ON budget_slice TO tallystick_service;
GRANT UPDATE (step, status, decided_by, decided_at, reason) ON approval TO tallystick_service;
SELECT audit_keep('approval_event');
SELECT audit_keep('gate_refusal');
SELECT audit_keep('run_subject')
"""


def upgrade() -> None:
    for statement in (
        _EFFECT_POLICY,
        _RUN_SUBJECT,
        _RUN_STATE,
        _RUN_TALLY,
        _RUN_FACT,
        _BUDGET,
        _APPROVAL,
        _APPROVAL_EVENT,
        _APPROVAL_HOLDS,
        _COUNTS_RISE,
        _GATE_REFUSAL,
        _PRIVILEGES,
    ):
        op.execute(statement)
    for table in _TABLES:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY tenant_isolation ON {table} USING (tenant_id = current_tenant())"
        )


def downgrade() -> None:
    op.execute("ALTER TABLE approval DROP CONSTRAINT approval_event_fkey")
    for table in reversed(_TABLES):
        op.execute(f"DROP TABLE {table}")
    op.execute("DROP FUNCTION approval_is_bound(), approval_goes_on(), counts_only_rise()")
    op.execute(_EFFECT_BEFORE)
