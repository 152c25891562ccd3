"""Tokens with roles, expiry, rotation and last use; a turn for each tenant at the reconciler.

Revision ID: 0004
"""

from alembic import op

revision = "0004"
down_revision = "0003"

_COLUMNS = """
ALTER TABLE api_token
    ADD COLUMN name          text,
    ADD COLUMN prefix        text,
    ADD COLUMN roles         text[],
    ADD COLUMN created_by    text,
    ADD COLUMN expires_at    timestamptz,
    ADD COLUMN last_used_at  timestamptz,
    ADD COLUMN replaces      uuid
"""

# The hash alone is known of a token that is there already, so nothing of it can be shown.
_FILL = (
    "UPDATE api_token SET name = 'admin', prefix = '', roles = ARRAY[role], created_by = 'admin'"
)

_CONSTRAINTS = """
ALTER TABLE api_token
    ALTER COLUMN name SET NOT NULL,
    ALTER COLUMN prefix SET NOT NULL,
    ALTER COLUMN roles SET NOT NULL,
    ALTER COLUMN created_by SET NOT NULL,
    DROP COLUMN role,
    ADD CONSTRAINT api_token_name_is_a_label_check CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$'),
    ADD CONSTRAINT api_token_prefix_is_short_check CHECK (prefix ~ '^(tk_[A-Za-z0-9_-]{8})?$'),
    ADD CONSTRAINT api_token_roles_are_known_check
        CHECK (roles <@ ARRAY['runtime', 'publisher', 'approver', 'operator', 'auditor', 'admin']),
    ADD CONSTRAINT api_token_has_a_role_check CHECK (cardinality(roles) >= 1),
    ADD CONSTRAINT api_token_expires_after_it_was_made_check CHECK (expires_at >= created_at),
    ADD CONSTRAINT api_token_tenant_id_replaces_key UNIQUE (tenant_id, replaces),
    ADD CONSTRAINT api_token_tenant_id_replaces_fkey FOREIGN KEY (tenant_id, replaces)
        REFERENCES api_token (tenant_id, token_id)
"""

# What a token opens never grows: a revoked one stays revoked, and no expiry is put off.
_ONLY_NARROWS = """
CREATE FUNCTION api_token_only_narrows() RETURNS trigger
LANGUAGE plpgsql SET search_path = public, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'token % would open more than before', OLD.token_id
        USING ERRCODE = 'check_violation', CONSTRAINT = 'api_token_only_narrows';
END
$$;
CREATE TRIGGER api_token_only_narrows
    BEFORE UPDATE ON api_token FOR EACH ROW
    WHEN (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at
          OR OLD.expires_at IS NOT NULL
             AND coalesce(NEW.expires_at, 'infinity') > OLD.expires_at)
    EXECUTE FUNCTION api_token_only_narrows();
REVOKE ALL ON FUNCTION api_token_only_narrows() FROM PUBLIC
"""

# Neither a token nor an issuer's word is looked up within a tenant: which one it is for is what is asked.
_LOOK_UPS = """
DROP FUNCTION authenticate(bytea);
CREATE FUNCTION authenticate(presented bytea)
RETURNS TABLE (token_id uuid, tenant_id uuid, tenant text, principal text, roles text[],
               seconds_left double precision, is_use_due boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT api_token.token_id, tenant.tenant_id, tenant.slug, api_token.principal, api_token.roles,
           coalesce(extract(epoch FROM expires_at - clock_timestamp()), 'infinity')::double precision,
           coalesce(last_used_at < clock_timestamp() - interval '1 minute', true)
      FROM api_token
      JOIN tenant USING (tenant_id)
     WHERE api_token.token_hash = presented
       AND api_token.revoked_at IS NULL
       AND coalesce(api_token.expires_at > clock_timestamp(), true)
$$;
CREATE FUNCTION tenant_named(wanted text)
RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT tenant_id FROM tenant WHERE slug = wanted
$$;
REVOKE ALL ON FUNCTION authenticate(bytea), tenant_named(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION authenticate(bytea), tenant_named(text) TO tallystick_service
"""

# The hash is written and never read back.
_PRIVILEGES = """
GRANT INSERT ON api_token TO tallystick_service;
GRANT SELECT (tenant_id, token_id, name, prefix, principal, roles, created_at, created_by, expires_at,
              last_used_at, revoked_at, replaces) ON api_token TO tallystick_service;
GRANT UPDATE (expires_at, last_used_at, revoked_at) ON api_token TO tallystick_service
"""

# Whom the reconciler serves, the longest due first: one look at the index for each tenant, so that no backlog
# hides another tenant's work.
_TURNS = """
DROP INDEX effect_open_due_at_idx;
CREATE INDEX effect_open_tenant_id_due_at_idx ON effect_open (tenant_id, due_at);
CREATE OR REPLACE FUNCTION tenants_due(most integer)
RETURNS TABLE (tenant_id uuid, tenant text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT tenant.tenant_id, tenant.slug
      FROM tenant
     CROSS JOIN LATERAL (SELECT min(due_at) AS since
                           FROM effect_open AS open
                          WHERE open.tenant_id = tenant.tenant_id) AS due
     WHERE due.since <= clock_timestamp()
     ORDER BY due.since
     LIMIT most
$$
"""
_FORMER_TURNS = """
CREATE OR REPLACE FUNCTION tenants_due(most integer)
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
$$;
DROP INDEX effect_open_tenant_id_due_at_idx;
CREATE INDEX effect_open_due_at_idx ON effect_open (due_at)
"""

# Whoever serves makes tables for a year at most.
_A_YEAR = """
DO $do$ BEGIN
    EXECUTE replace(pg_get_functiondef('ensure_partitions(integer)'::regprocedure),
                    'least(months_ahead, 120)', 'least(months_ahead, 12)');
END $do$
"""
_TEN_YEARS = """
DO $do$ BEGIN
    EXECUTE replace(pg_get_functiondef('ensure_partitions(integer)'::regprocedure),
                    'least(months_ahead, 12)', 'least(months_ahead, 120)');
END $do$
"""

# Only an administrator's tokens were known, and none expired: whatever opened less opens nothing.
_NARROW = """
DROP TRIGGER api_token_only_narrows ON api_token;
DROP FUNCTION api_token_only_narrows();
ALTER TABLE api_token DROP CONSTRAINT api_token_tenant_id_replaces_fkey;
DELETE FROM api_token WHERE NOT 'admin' = ANY (roles) OR expires_at IS NOT NULL
"""
_FORMER = """
ALTER TABLE api_token ADD COLUMN role text NOT NULL DEFAULT 'admin';
ALTER TABLE api_token
    ALTER COLUMN role DROP DEFAULT,
    ADD CONSTRAINT api_token_role_is_known_check CHECK (role IN ('admin')),
    DROP COLUMN name,
    DROP COLUMN prefix,
    DROP COLUMN roles,
    DROP COLUMN created_by,
    DROP COLUMN expires_at,
    DROP COLUMN last_used_at,
    DROP COLUMN replaces;
REVOKE ALL ON api_token FROM tallystick_service;
DROP FUNCTION authenticate(bytea);
DROP FUNCTION tenant_named(text);
CREATE FUNCTION authenticate(presented bytea)
RETURNS TABLE (tenant_id uuid, tenant text, principal text, role text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT tenant.tenant_id, tenant.slug, api_token.principal, api_token.role
      FROM api_token
      JOIN tenant USING (tenant_id)
     WHERE api_token.token_hash = presented
       AND api_token.revoked_at IS NULL
$$;
REVOKE ALL ON FUNCTION authenticate(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION authenticate(bytea) TO tallystick_service
"""


def upgrade() -> None:
    for statement in (
        _COLUMNS,
        _FILL,
        _CONSTRAINTS,
        _ONLY_NARROWS,
        _LOOK_UPS,
        _PRIVILEGES,
        _TURNS,
        _A_YEAR,
    ):
        op.execute(statement)


def downgrade() -> None:
    op.execute(_TEN_YEARS)
    op.execute(_FORMER_TURNS)
    op.execute(_NARROW)
    op.execute(_FORMER)
