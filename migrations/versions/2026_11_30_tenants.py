"""Tenants, tokens and the role that the service works under.

Revision ID: 0001
"""

from alembic import op

revision = "0001"
down_revision = None

# Roles belong to the whole cluster: several databases of one cluster share this one, and two of them
# may be prepared at the same moment. Where it stands already, an owner need not be able to make any.
_ROLE = """
DO $$
BEGIN
    IF to_regrole('tallystick_service') IS NULL THEN
        CREATE ROLE tallystick_service NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
    END IF;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN NULL;
END
$$
"""

# From PostgreSQL 16 on, who makes a role is its member and still may not change to it.
_MEMBERSHIP = """
DO $$
DECLARE
    version  integer := current_setting('server_version_num');
    may      text := CASE WHEN version < 160000 THEN 'MEMBER' ELSE 'SET' END;
BEGIN
    IF NOT pg_has_role(current_user, 'tallystick_service', may) THEN
        GRANT tallystick_service TO CURRENT_USER;
    END IF;
END
$$
"""

# Unset, the setting is NULL before its first use in a session and '' after it: both mean no tenant, no rows.
_CURRENT_TENANT = """
CREATE FUNCTION current_tenant() RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE
RETURN nullif(current_setting('tallystick.tenant', true), '')::uuid
"""

_TENANT = """
CREATE TABLE tenant (
    tenant_id   uuid        NOT NULL,
    slug        text        NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT tenant_pkey PRIMARY KEY (tenant_id),
    CONSTRAINT tenant_slug_key UNIQUE (slug),
    CONSTRAINT tenant_slug_is_a_label_check CHECK (slug ~ '^[a-z0-9][a-z0-9-]{0,62}$')
)
"""

_API_TOKEN = """
CREATE TABLE api_token (
    tenant_id   uuid        NOT NULL,
    token_id    uuid        NOT NULL,
    token_hash  bytea       NOT NULL,
    principal   text        NOT NULL,
    role        text        NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    revoked_at  timestamptz,
    CONSTRAINT api_token_pkey PRIMARY KEY (tenant_id, token_id),
    CONSTRAINT api_token_token_hash_key UNIQUE (token_hash),
    CONSTRAINT api_token_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (tenant_id),
    CONSTRAINT api_token_hash_is_sha256_check CHECK (length(token_hash) = 32),
    CONSTRAINT api_token_role_is_known_check CHECK (role IN ('admin'))
)
"""

_SERVICE_KEY = """
CREATE TABLE service_key (
    key_id       text        NOT NULL,
    check_value  bytea       NOT NULL,
    first_seen_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT service_key_pkey PRIMARY KEY (key_id)
)
"""

# A token is looked up before its tenant is known, so row-level security cannot help here: a definer-rights
# function answers for one hash, and the service's role cannot read the table.
_AUTHENTICATE = """
CREATE FUNCTION authenticate(presented bytea)
RETURNS TABLE (tenant_id uuid, tenant text, principal text, role text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT tenant.tenant_id, tenant.slug, api_token.principal, api_token.role
      FROM api_token
      JOIN tenant USING (tenant_id)
     WHERE api_token.token_hash = presented
       AND api_token.revoked_at IS NULL
$$
"""

_ROW_SECURITY = """
ALTER TABLE tenant ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON tenant USING (tenant_id = current_tenant());
ALTER TABLE api_token ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON api_token USING (tenant_id = current_tenant());
GRANT USAGE ON SCHEMA public TO tallystick_service;
GRANT SELECT ON tenant TO tallystick_service;
GRANT SELECT ON service_key TO tallystick_service;
REVOKE ALL ON FUNCTION authenticate(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION authenticate(bytea) TO tallystick_service
"""

_DEFAULT_TENANT = "INSERT INTO tenant (tenant_id, slug) VALUES (gen_random_uuid(), 'default')"


def upgrade() -> None:
    for statement in (
        _ROLE,
        _MEMBERSHIP,
        _CURRENT_TENANT,
        _TENANT,
        _API_TOKEN,
        _SERVICE_KEY,
        _AUTHENTICATE,
        _ROW_SECURITY,
        _DEFAULT_TENANT,
    ):
        op.execute(statement)


def downgrade() -> None:
    # The role stays: other databases of the cluster may use it.
    op.execute("DROP FUNCTION authenticate(bytea)")
    op.execute("DROP TABLE service_key, api_token, tenant")
    op.execute("DROP FUNCTION current_tenant()")
