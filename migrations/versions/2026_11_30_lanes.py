"""Lanes: what time decides is found apart from what a provider is asked about, and that by contract.

Two partial indexes take the place of one. A row stands in one of them, so that a step writes as much as before;
and a step that changes the state changes due_at as well, so that no update becomes dearer.

Revision ID: 0015
"""

from alembic import op

revision = "0015"
down_revision = "0014"

_INDEXES = """
CREATE INDEX effect_open_tenant_id_contract_id_due_at_idx ON effect_open (tenant_id, contract_id, due_at)
    WHERE state = 'UNKNOWN';
DROP INDEX effect_open_tenant_id_due_at_idx;
CREATE INDEX effect_open_tenant_id_due_at_idx ON effect_open (tenant_id, due_at) WHERE state <> 'UNKNOWN'
"""
_FORMER_INDEX = """
DROP INDEX effect_open_tenant_id_contract_id_due_at_idx;
DROP INDEX effect_open_tenant_id_due_at_idx;
CREATE INDEX effect_open_tenant_id_due_at_idx ON effect_open (tenant_id, due_at)
"""

# For whom time alone decides something, the longest due first: one look at the index for each tenant.
_TENANTS_DUE = """
CREATE OR REPLACE FUNCTION tenants_due(most integer)
RETURNS TABLE (tenant_id uuid, tenant text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT tenant.tenant_id, tenant.slug
      FROM tenant
     CROSS JOIN LATERAL (SELECT min(due_at) AS since
                           FROM effect_open AS open
                          WHERE open.tenant_id = tenant.tenant_id{}) AS due
     WHERE due.since <= clock_timestamp()
     ORDER BY due.since
     LIMIT most
$$
"""

# Whose effects a provider may be asked about, the longest due first. A loose scan: one look at the index for
# each contract that has an effect in doubt, however many it has.
_CONTRACTS_DUE = """
CREATE FUNCTION contracts_due(most integer)
RETURNS TABLE (tenant_id uuid, tenant text, contract_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH RECURSIVE first AS (
        (SELECT open.tenant_id, open.contract_id, open.due_at
           FROM effect_open AS open
          WHERE open.state = 'UNKNOWN'
          ORDER BY open.tenant_id, open.contract_id, open.due_at
          LIMIT 1)
         UNION ALL
        SELECT following.tenant_id, following.contract_id, following.due_at
          FROM first
         CROSS JOIN LATERAL (SELECT open.tenant_id, open.contract_id, open.due_at
                               FROM effect_open AS open
                              WHERE open.state = 'UNKNOWN'
                                AND (open.tenant_id, open.contract_id) > (first.tenant_id, first.contract_id)
                              ORDER BY open.tenant_id, open.contract_id, open.due_at
                              LIMIT 1) AS following
    )
    SELECT first.tenant_id, tenant.slug, first.contract_id
      FROM first
      JOIN tenant ON tenant.tenant_id = first.tenant_id
     WHERE first.due_at <= clock_timestamp()
     ORDER BY first.due_at
     LIMIT most
$$;
REVOKE ALL ON FUNCTION contracts_due(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION contracts_due(integer) TO tallystick_service
"""


def upgrade() -> None:
    op.execute(_INDEXES)
    op.execute(_TENANTS_DUE.format(" AND open.state <> 'UNKNOWN'"))
    op.execute(_CONTRACTS_DUE)


def downgrade() -> None:
    op.execute("DROP FUNCTION contracts_due(integer)")
    op.execute(_TENANTS_DUE.format(""))
    op.execute(_FORMER_INDEX)
