"""Quarantine: two people's words on an effect, and effects that take the place of others.

Revision ID: 0011
"""

from alembic import op

revision = "0011"
down_revision = "0010"

# What was quarantined by its first step was never sent, and may be given up. What takes the place of work that
# was given up names it; nothing else takes that place.
_SUPERSEDES = """
INSERT INTO legal_transition (transition, from_state, to_state) VALUES ('T8', 'QUARANTINED', 'CANCELLED');
ALTER TABLE event ADD CONSTRAINT event_cancelled_from_quarantine_was_never_sent_check
    CHECK (transition <> 'T8' OR from_state <> 'QUARANTINED' OR fence = 1);
ALTER TABLE effect
    ADD COLUMN supersedes bigint,
    ADD CONSTRAINT effect_supersedes_another_check CHECK (supersedes <> number),
    ADD CONSTRAINT effect_supersedes_fkey FOREIGN KEY (run_id, supersedes)
        REFERENCES effect (run_id, number);
CREATE UNIQUE INDEX effect_run_id_supersedes_idx ON effect (run_id, supersedes)
    WHERE supersedes IS NOT NULL;
GRANT INSERT (supersedes) ON effect TO tallystick_service
"""

_SUPERSEDED_IS_CANCELLED = """
CREATE FUNCTION superseded_is_cancelled() RETURNS trigger
LANGUAGE plpgsql SET search_path = public, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM effect AS former
          JOIN effect_outcome AS outcome USING (run_id, number)
         WHERE former.run_id = NEW.run_id AND former.number = NEW.supersedes
           AND (former.tenant_id, former.tool, former.effect_class, former.principal)
             = (NEW.tenant_id, NEW.tool, NEW.effect_class, NEW.principal)
           AND outcome.status = 'CANCELLED'
           AND outcome.fence = (SELECT max(fence) FROM event
                                 WHERE event.run_id = former.run_id AND event.number = former.number)
           AND NOT EXISTS (SELECT FROM effect_attempt AS attempt
                            WHERE attempt.run_id = former.run_id AND attempt.number = former.number))
    THEN
        RAISE EXCEPTION 'effect %.% cannot take the place of %', NEW.run_id, NEW.number, NEW.supersedes
            USING ERRCODE = 'check_violation', CONSTRAINT = 'superseded_is_cancelled';
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER superseded_is_cancelled
    AFTER INSERT ON effect FOR EACH ROW WHEN (NEW.supersedes IS NOT NULL)
    EXECUTE FUNCTION superseded_is_cancelled();
REVOKE ALL ON FUNCTION superseded_is_cancelled() FROM PUBLIC
"""

# People's words on one effect, each following the one before it by key. The second person's names the first,
# and by key agrees with what that one proposed, in the same quarantine.
_RESOLUTION_EVENT = """
CREATE TABLE resolution_event (
    run_id         uuid        NOT NULL,
    number         bigint      NOT NULL,
    step           integer     NOT NULL,
    tenant_id      uuid        NOT NULL,
    fence          bigint      NOT NULL,
    previous_step  integer,
    from_status    text        NOT NULL,
    to_status      text        NOT NULL,
    to_state       text        NOT NULL,
    principal      text        NOT NULL,
    proposed_by    text,
    reason         text        NOT NULL,
    evidence       text,
    at             timestamptz NOT NULL,
    CONSTRAINT resolution_event_pkey PRIMARY KEY (run_id, number, step),
    CONSTRAINT resolution_event_run_id_number_step_to_status_key UNIQUE (run_id, number, step, to_status),
    CONSTRAINT resolution_event_what_was_said_key
        UNIQUE (run_id, number, step, fence, to_state, principal),
    CONSTRAINT resolution_event_follows_fkey FOREIGN KEY (run_id, number, previous_step, from_status)
        REFERENCES resolution_event (run_id, number, step, to_status),
    CONSTRAINT resolution_event_agrees_fkey
        FOREIGN KEY (run_id, number, previous_step, fence, to_state, proposed_by)
        REFERENCES resolution_event (run_id, number, step, fence, to_state, principal),
    CONSTRAINT resolution_event_first_is_new_check
        CHECK ((step = 1) = (from_status = 'new') AND (step = 1) = (previous_step IS NULL)),
    CONSTRAINT resolution_event_step_rises_by_one_check CHECK (step >= 1 AND previous_step = step - 1),
    CONSTRAINT resolution_event_is_legal_check
        CHECK ((from_status, to_status) IN (
            ('new', 'proposed'),
            ('proposed', 'proposed'), ('proposed', 'withdrawn'), ('proposed', 'confirmed'),
            ('withdrawn', 'proposed'), ('confirmed', 'proposed'))),
    CONSTRAINT resolution_event_to_state_is_closed_check
        CHECK (to_state IN ('SUCCEEDED', 'FAILED', 'ABANDONED')),
    CONSTRAINT resolution_event_takes_two_people_check
        CHECK ((to_status = 'confirmed') = (proposed_by IS NOT NULL) AND proposed_by <> principal)
)
"""

_TWO_PEOPLE = """
CREATE FUNCTION resolution_is_bound() RETURNS trigger
LANGUAGE plpgsql SET search_path = public, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM event
         WHERE run_id = NEW.run_id AND number = NEW.number AND fence = NEW.fence
           AND tenant_id = NEW.tenant_id AND to_state = 'QUARANTINED') THEN
        RAISE EXCEPTION 'effect %.% was not quarantined by step %', NEW.run_id, NEW.number, NEW.fence
            USING ERRCODE = 'check_violation', CONSTRAINT = 'resolution_is_bound';
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER resolution_is_bound
    AFTER INSERT ON resolution_event FOR EACH ROW EXECUTE FUNCTION resolution_is_bound();
CREATE FUNCTION two_people_agreed() RETURNS trigger
LANGUAGE plpgsql SET search_path = public, pg_temp
AS $$
BEGIN
    IF EXISTS (
        SELECT FROM effect
         WHERE run_id = NEW.run_id AND number = NEW.number
           AND effect_class IN ('UNKNOWN', 'NON_RETRYABLE'))
       AND NOT EXISTS (
        SELECT FROM resolution_event
         WHERE run_id = NEW.run_id AND number = NEW.number AND fence = NEW.previous_fence
           AND to_state = NEW.to_state AND to_status = 'confirmed') THEN
        RAISE EXCEPTION 'nobody confirmed % of effect %.%', NEW.to_state, NEW.run_id, NEW.number
            USING ERRCODE = 'check_violation', CONSTRAINT = 'two_people_agreed';
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER two_people_agreed
    AFTER INSERT ON event FOR EACH ROW WHEN (NEW.transition = 'T11')
    EXECUTE FUNCTION two_people_agreed();
REVOKE ALL ON FUNCTION resolution_is_bound(), two_people_agreed() FROM PUBLIC
"""

_PRIVILEGES = """
GRANT SELECT, INSERT ON resolution_event TO tallystick_service;
SELECT audit_keep('resolution_event');
ALTER TABLE resolution_event ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON resolution_event USING (tenant_id = current_tenant())
"""


def upgrade() -> None:
    for statement in (
        _SUPERSEDES,
        _SUPERSEDED_IS_CANCELLED,
        _RESOLUTION_EVENT,
        _TWO_PEOPLE,
        _PRIVILEGES,
    ):
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP TRIGGER two_people_agreed ON event")
    op.execute("DROP TRIGGER superseded_is_cancelled ON effect")
    op.execute("DROP TABLE resolution_event")
    op.execute(
        "DROP FUNCTION two_people_agreed(), resolution_is_bound(), superseded_is_cancelled()"
    )
    op.execute("ALTER TABLE effect DROP COLUMN supersedes")
    op.execute(
        "DELETE FROM legal_transition WHERE transition = 'T8' AND from_state = 'QUARANTINED'"
    )
    op.execute(
        "ALTER TABLE event DROP CONSTRAINT event_cancelled_from_quarantine_was_never_sent_check"
    )
