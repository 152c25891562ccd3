"""The reverse sweep: what the provider lists and the ledger has not, and how far each listing has been read.

Revision ID: 0014
"""

from alembic import op

revision = "0014"
down_revision = "0013"

# What nobody knows of an effect that only the provider's listing names is NULL, and of such an effect alone.
_UNKNOWN = (
    "identity",
    "capabilities",
    "credential_version",
    "principal",
    "key_id",
    "request_fingerprint",
    "operation_fingerprint",
)

_ORPHAN = f"""
ALTER TABLE effect
    {", ".join(f"ALTER COLUMN {name} DROP NOT NULL" for name in ("run", *_UNKNOWN))};
ALTER TABLE effect DROP CONSTRAINT effect_origin_is_known_check;
ALTER TABLE effect
    ADD CONSTRAINT effect_origin_is_known_check
        CHECK (origin IN ('runtime', 'queue', 'look_up', 'listing')),
    ADD CONSTRAINT effect_orphan_says_what_is_unknown_check
        CHECK (num_nulls({", ".join(_UNKNOWN)}) = CASE origin WHEN 'listing' THEN {len(_UNKNOWN)} ELSE 0 END
               AND (run IS NOT NULL OR origin = 'listing'))
"""

_ORPHAN_BEFORE = f"""
ALTER TABLE effect
    DROP CONSTRAINT effect_orphan_says_what_is_unknown_check,
    DROP CONSTRAINT effect_origin_is_known_check;
ALTER TABLE effect ADD CONSTRAINT effect_origin_is_known_check CHECK (origin IN ('runtime', 'queue', 'look_up'));
ALTER TABLE effect
    {", ".join(f"ALTER COLUMN {name} SET NOT NULL" for name in ("run", *_UNKNOWN))}
"""

# An effect of which nobody knows what was sent is never sent again, and was sent, so nobody gives it up.
_WAITS_FOR_PEOPLE = """
    ELSIF came_by = 'listing' AND last.to_state NOT IN ('QUARANTINED', 'SUCCEEDED', 'FAILED', 'ABANDONED') THEN
        RAISE EXCEPTION 'effect %.% is known from the provider alone, and is now %',
            it.run_id, it.number, last.to_state
            USING ERRCODE = 'check_violation', CONSTRAINT = 'effect_is_whole';
"""

_WHOLE = """
CREATE OR REPLACE FUNCTION effect_is_whole() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    it         record;
    owner      uuid;
    came_by    text;
    last       record;
    opened     record;
    closed     record;
BEGIN
    IF TG_OP = 'DELETE' THEN it := OLD; ELSE it := NEW; END IF;
    SELECT tenant_id, origin INTO owner, came_by FROM effect WHERE run_id = it.run_id AND number = it.number;
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
{more}    ELSIF opened IS NOT NULL THEN
        IF opened.fence <> last.fence OR opened.state <> last.to_state THEN
            RAISE EXCEPTION 'effect %.% is open as % but its last event says %',
                it.run_id, it.number, opened.state, last.to_state
                USING ERRCODE = 'check_violation', CONSTRAINT = 'effect_is_whole';
        ELSIF closed IS NOT NULL AND opened.state <> 'QUARANTINED' THEN
            RAISE EXCEPTION 'effect %.% was closed before, and is now %',
                it.run_id, it.number, opened.state
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
$$
"""

# One row for each listing that a tenant's contracts name. Who has raised its fence reads it, for one lease.
_LISTING_PROGRESS = """
CREATE TABLE listing_progress (
    tenant_id  uuid        NOT NULL,
    listing    text        NOT NULL,
    fence      bigint      NOT NULL DEFAULT 0,
    due_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    since      timestamptz NOT NULL,
    began_at   timestamptz,
    cursor     text,
    failures   integer     NOT NULL DEFAULT 0,
    listed     bigint      NOT NULL DEFAULT 0,
    orphans    bigint      NOT NULL DEFAULT 0,
    ignored    bigint      NOT NULL DEFAULT 0,
    CONSTRAINT listing_progress_pkey PRIMARY KEY (tenant_id, listing),
    CONSTRAINT listing_progress_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (tenant_id),
    CONSTRAINT listing_progress_cursor_is_of_a_pass_check CHECK (cursor IS NULL OR began_at IS NOT NULL),
    CONSTRAINT listing_progress_counts_are_not_negative_check
        CHECK (fence >= 0 AND failures >= 0 AND listed >= 0 AND orphans >= 0 AND ignored >= 0)
);
CREATE INDEX contract_content_listing_idx ON contract_content (tenant_id, contract_digest)
    WHERE document LIKE '%"listing":%';
ALTER TABLE listing_progress ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON listing_progress USING (tenant_id = current_tenant());
GRANT SELECT, INSERT,
    UPDATE (fence, due_at, since, began_at, cursor, failures, listed, orphans, ignored)
    ON listing_progress TO tallystick_service
"""

# Of all tenants: who uses a contract that may have a listing, and how far the listings have been read.
_LISTINGS = """
CREATE FUNCTION tenants_listing()
RETURNS TABLE (tenant_id uuid, tenant text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT DISTINCT tenant.tenant_id, tenant.slug
      FROM contract_content AS content
      JOIN contract USING (tenant_id, contract_digest)
      LEFT JOIN contract_share_acceptance AS acceptance USING (contract_id)
      JOIN tenant ON tenant.tenant_id IN (contract.tenant_id, acceptance.tenant_id)
     WHERE content.document LIKE '%"listing":%'
$$;
CREATE FUNCTION listings_read()
RETURNS TABLE (listed bigint, orphans bigint, ignored bigint, until timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT coalesce(sum(progress.listed), 0)::bigint, coalesce(sum(progress.orphans), 0)::bigint,
           coalesce(sum(progress.ignored), 0)::bigint, min(progress.since)
      FROM listing_progress AS progress
$$
"""

# Whether an effect may be recorded in a run of which the asking tenant knows nothing: NULL if it may. Its month
# has to be there, and no other tenant may have the run. Row-level security hides both.
_RUN_STANDING = """
CREATE FUNCTION run_standing(asked uuid) RETURNS text
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT CASE
        WHEN EXISTS (
            SELECT FROM unnest(ARRAY[
                'effect', 'effect_attempt', 'effect_evidence', 'event', 'effect_outcome', 'run_tool'
            ]) AS parent
             WHERE to_regclass(parent || to_char(
                       to_timestamp(('x' || left(replace(asked::text, '-', ''), 12))::bit(48)::bigint / 1000.0)
                           AT TIME ZONE 'UTC', '_YYYY_MM')) IS NULL) THEN 'gone'
        WHEN EXISTS (SELECT FROM effect WHERE run_id = asked AND tenant_id <> current_tenant())
          OR EXISTS (SELECT FROM run_tool WHERE run_id = asked AND tenant_id <> current_tenant())
          OR EXISTS (SELECT FROM gate_refusal WHERE run_id = asked AND tenant_id <> current_tenant())
          OR EXISTS (SELECT FROM run_subject WHERE run_id = asked AND tenant_id <> current_tenant())
        THEN 'foreign'
    END
$$;
REVOKE ALL ON FUNCTION tenants_listing(), listings_read(), run_standing(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_listing(), listings_read(), run_standing(uuid) TO tallystick_service
"""


def upgrade() -> None:
    for statement in (_ORPHAN, _LISTING_PROGRESS, _LISTINGS, _RUN_STANDING):
        op.execute(statement)
    op.execute(_WHOLE.format(more=_WAITS_FOR_PEOPLE.removeprefix("\n")))


def downgrade() -> None:
    op.execute(_WHOLE.format(more=""))
    op.execute("DROP FUNCTION run_standing(uuid), listings_read(), tenants_listing()")
    op.execute("DROP INDEX contract_content_listing_idx")
    op.execute("DROP TABLE listing_progress")
    op.execute(_ORPHAN_BEFORE)
