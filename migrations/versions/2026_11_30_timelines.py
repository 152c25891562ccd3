"""The timeline of the database in which each attempt was dispatched.

Revision ID: 0013
"""

from alembic import op

revision = "0013"
down_revision = "0012"

# PostgreSQL counts its timeline up when a standby takes over. The name of the file that is written to begins
# with it, in hex; pg_control_checkpoint would say it too, but only from the next checkpoint on. Where the log
# cannot be asked (Aurora has none of its own, and some may not be asked by all), nothing is known of timelines.
CURRENT_TIMELINE = """
DO $do$
BEGIN
    PERFORM pg_walfile_name(pg_current_wal_insert_lsn());
    CREATE FUNCTION current_timeline() RETURNS integer
    LANGUAGE sql VOLATILE
    RETURN ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::integer;
EXCEPTION
    WHEN object_not_in_prerequisite_state OR feature_not_supported OR insufficient_privilege THEN
        CREATE FUNCTION current_timeline() RETURNS integer
        LANGUAGE sql VOLATILE
        RETURN NULL::integer;
END
$do$;
REVOKE ALL ON FUNCTION current_timeline() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION current_timeline() TO tallystick_service
"""

# The database says it, and not who inserts: nobody is granted the column. An attempt from before has none.
_ATTEMPT = """
ALTER TABLE effect_attempt ADD COLUMN timeline integer;
ALTER TABLE effect_attempt ALTER COLUMN timeline SET DEFAULT current_timeline()
"""

# Row-level security hides other tenants' effects. Read once after a change, not at each sweep: no index is
# worth its upkeep for that. The look-up of the attempt stays one by key, whatever the planner believes.
_TENANTS_LEFT_BEHIND = """
CREATE FUNCTION tenants_left_behind(most integer)
RETURNS TABLE (tenant_id uuid, tenant text)
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT tenant.tenant_id, tenant.slug
      FROM tenant
      JOIN (SELECT DISTINCT open.tenant_id
              FROM effect_open AS open
             WHERE open.state = 'DISPATCHED'
               AND (SELECT attempt.timeline FROM effect_attempt AS attempt
                     WHERE attempt.run_id = open.run_id AND attempt.number = open.number
                       AND attempt.attempt = open.attempt) <> (SELECT current_timeline())
           ) AS behind USING (tenant_id)
     LIMIT most
$$;
REVOKE ALL ON FUNCTION tenants_left_behind(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_left_behind(integer) TO tallystick_service
"""


def upgrade() -> None:
    for statement in (CURRENT_TIMELINE, _ATTEMPT, _TENANTS_LEFT_BEHIND):
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP FUNCTION tenants_left_behind(integer)")
    op.execute("ALTER TABLE effect_attempt DROP COLUMN timeline")
    op.execute("DROP FUNCTION current_timeline()")
