"""Evidence: what comes later opens a closed effect again, or puts one in doubt that was to be sent again.

Revision ID: 0010
"""

from alembic import op

revision = "0010"
down_revision = "0009"

_LEGAL_TRANSITION = """
INSERT INTO legal_transition (transition, from_state, to_state) VALUES
    ('T12', 'SUCCEEDED', 'QUARANTINED'),
    ('T12', 'FAILED', 'QUARANTINED'),
    ('T12', 'REFUSED', 'QUARANTINED'),
    ('T12', 'CANCELLED', 'QUARANTINED'),
    ('T12', 'ABANDONED', 'QUARANTINED'),
    ('T13', 'RETRYABLE', 'UNKNOWN')
"""

# What was closed once is never sent again: open once more, it waits for a person and for nothing else.
_STAYS_QUARANTINED = """
        ELSIF closed IS NOT NULL AND opened.state <> 'QUARANTINED' THEN
            RAISE EXCEPTION 'effect %.% was closed before, and is now %',
                it.run_id, it.number, opened.state
                USING ERRCODE = 'check_violation', CONSTRAINT = 'effect_is_whole';
"""

_WHOLE = """
CREATE OR REPLACE FUNCTION effect_is_whole() RETURNS trigger
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
{more}        ELSIF opened.state = 'DISPATCHED' AND NOT EXISTS (
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
$$
"""

# For the metrics, of all tenants: how many effects are open, and since when the oldest is in doubt.
_EFFECTS_OPEN = """
CREATE FUNCTION effects_open()
RETURNS TABLE (state text, many bigint, unknown_since timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT open.state, count(*), min(open.unknown_since) FROM effect_open AS open GROUP BY open.state
$$;
REVOKE ALL ON FUNCTION effects_open() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION effects_open() TO tallystick_service
"""


def upgrade() -> None:
    op.execute(_LEGAL_TRANSITION)
    op.execute(_WHOLE.format(more=_STAYS_QUARANTINED.removeprefix("\n")))
    op.execute(_EFFECTS_OPEN)


def downgrade() -> None:
    op.execute("DROP FUNCTION effects_open()")
    op.execute(_WHOLE.format(more=""))
    op.execute("DELETE FROM legal_transition WHERE transition IN ('T12', 'T13')")
