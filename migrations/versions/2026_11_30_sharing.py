"""Contracts that are shared with other tenants, and credentials that can be revoked.

Who shares a contract names the other tenant by its slug, as a person would, and no key holds it to
a tenant: an answer must not tell whether there is one. A share is an offer: the other tenant sees
nothing of the contract before it has accepted it.

Revision ID: 0005
"""

from alembic import op

revision = "0005"
down_revision = "0004"

_CONTRACT_SHARE = """
CREATE TABLE contract_share (
    tenant_id    uuid        NOT NULL,
    contract_id  uuid        NOT NULL,
    shared_with  text        NOT NULL,
    shared_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    shared_by    text        NOT NULL,
    revoked_at   timestamptz,
    CONSTRAINT contract_share_pkey PRIMARY KEY (contract_id, shared_with),
    CONSTRAINT contract_share_tenant_id_contract_id_fkey FOREIGN KEY (tenant_id, contract_id)
        REFERENCES contract (tenant_id, contract_id),
    CONSTRAINT contract_share_shared_with_is_a_label_check
        CHECK (shared_with ~ '^[a-z0-9][a-z0-9-]{0,62}$')
);
CREATE INDEX contract_share_shared_with_idx ON contract_share (shared_with);
CREATE INDEX contract_tenant_id_contract_digest_idx ON contract (tenant_id, contract_digest)
"""

# A row of the tenant that the contract is shared with. What it withdrew serves what is still open.
_ACCEPTANCE = """
CREATE TABLE contract_share_acceptance (
    tenant_id     uuid        NOT NULL,
    contract_id   uuid        NOT NULL,
    accepted_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    accepted_by   text        NOT NULL,
    withdrawn_at  timestamptz,
    CONSTRAINT contract_share_acceptance_pkey PRIMARY KEY (tenant_id, contract_id),
    CONSTRAINT contract_share_acceptance_tenant_id_fkey
        FOREIGN KEY (tenant_id) REFERENCES tenant (tenant_id),
    CONSTRAINT contract_share_acceptance_contract_id_fkey
        FOREIGN KEY (contract_id) REFERENCES contract (contract_id)
)
"""

# The other tenant sees no row of contract_share: these definer-rights functions tell it what is
# offered, what of it is accepted, and by which tenant it is shared. A share that was revoked or
# withdrawn is told with the time: it serves what is still open. Strict, so that nothing is looked up
# for a contract of the tenant's own.
_SHARES = """
CREATE FUNCTION share_of(contract uuid)
RETURNS TABLE (owner text, shared_at timestamptz, revoked_at timestamptz)
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = public, pg_temp ROWS 1
AS $$
    SELECT sharing.slug, share.shared_at, least(share.revoked_at, acceptance.withdrawn_at)
      FROM contract_share_acceptance AS acceptance
      JOIN tenant AS asking ON asking.tenant_id = acceptance.tenant_id
      JOIN contract_share AS share ON share.contract_id = acceptance.contract_id
                                  AND share.shared_with = asking.slug
      JOIN tenant AS sharing ON sharing.tenant_id = share.tenant_id
     WHERE acceptance.tenant_id = current_tenant()
       AND acceptance.contract_id = contract
$$;
CREATE FUNCTION shared_contracts(named text, numbered text)
RETURNS TABLE (contract_id uuid, shared_at timestamptz, revoked_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp ROWS 10
AS $$
    SELECT share.contract_id, share.shared_at, least(share.revoked_at, acceptance.withdrawn_at)
      FROM contract_share_acceptance AS acceptance
      JOIN tenant AS asking ON asking.tenant_id = acceptance.tenant_id
      JOIN contract_share AS share ON share.contract_id = acceptance.contract_id
                                  AND share.shared_with = asking.slug
      JOIN contract ON contract.contract_id = share.contract_id
     WHERE acceptance.tenant_id = current_tenant()
       AND (named IS NULL OR contract.name = named)
       AND (numbered IS NULL OR contract.version = numbered)
$$;
CREATE FUNCTION shares_offered()
RETURNS TABLE (contract_id uuid, owner text, name text, version text, revoked_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp ROWS 10
AS $$
    SELECT share.contract_id, sharing.slug, contract.name, contract.version, share.revoked_at
      FROM tenant AS asking
      JOIN contract_share AS share ON share.shared_with = asking.slug
      JOIN tenant AS sharing ON sharing.tenant_id = share.tenant_id
      JOIN contract ON contract.contract_id = share.contract_id
     WHERE asking.tenant_id = current_tenant()
$$;
REVOKE ALL ON FUNCTION share_of(uuid), shared_contracts(text, text), shares_offered() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION share_of(uuid), shared_contracts(text, text), shares_offered()
    TO tallystick_service
"""

# Beside its own rows a tenant reads those of a contract that it accepted. A dispatch holds the state
# row FOR SHARE, which takes the right to update it: it may be locked, and never changed.
_POLICIES = """
CREATE POLICY shared_read ON contract FOR SELECT
    USING (tenant_id <> current_tenant() AND EXISTS (SELECT FROM share_of(contract_id)));
CREATE POLICY shared_read ON contract_state FOR SELECT
    USING (tenant_id <> current_tenant() AND EXISTS (SELECT FROM share_of(contract_id)));
CREATE POLICY shared_lock ON contract_state FOR UPDATE
    USING (tenant_id <> current_tenant() AND EXISTS (SELECT FROM share_of(contract_id)))
    WITH CHECK (false);
CREATE POLICY shared_read ON contract_closing FOR SELECT
    USING (tenant_id <> current_tenant() AND EXISTS (SELECT FROM share_of(contract_id)));
CREATE POLICY shared_read ON contract_content FOR SELECT
    USING (tenant_id <> current_tenant()
           AND EXISTS (SELECT FROM contract
                        WHERE contract.tenant_id = contract_content.tenant_id
                          AND contract.contract_digest = contract_content.contract_digest));
ALTER TABLE contract_share ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON contract_share USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE (shared_at, shared_by, revoked_at) ON contract_share TO tallystick_service;
ALTER TABLE contract_share_acceptance ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON contract_share_acceptance USING (tenant_id = current_tenant());
CREATE POLICY contract_is_offered ON contract_share_acceptance AS RESTRICTIVE FOR INSERT
    WITH CHECK (EXISTS (SELECT FROM shares_offered() AS offer
                         WHERE offer.contract_id = contract_share_acceptance.contract_id
                           AND offer.revoked_at IS NULL));
GRANT SELECT, INSERT, UPDATE (accepted_at, accepted_by, withdrawn_at) ON contract_share_acceptance
    TO tallystick_service
"""

# Whoever uses a contract binds it to a credential of its own and pins it for itself: if it may see it.
_BINDING = """
ALTER TABLE credential_binding
    DROP CONSTRAINT credential_binding_tenant_id_contract_id_fkey,
    DROP CONSTRAINT credential_binding_pkey,
    ADD CONSTRAINT credential_binding_pkey PRIMARY KEY (tenant_id, contract_id),
    ADD CONSTRAINT credential_binding_contract_id_fkey FOREIGN KEY (contract_id)
        REFERENCES contract (contract_id);
CREATE POLICY contract_is_visible ON credential_binding AS RESTRICTIVE FOR INSERT
    WITH CHECK (EXISTS (SELECT FROM contract
                         WHERE contract.contract_id = credential_binding.contract_id));
CREATE POLICY contract_is_visible ON pin AS RESTRICTIVE FOR INSERT
    WITH CHECK (EXISTS (SELECT FROM contract WHERE contract.contract_id = pin.contract_id))
"""

# What refers to a version keeps it from being retired: nobody refers to one that it does not see.
_EFFECTS = """
CREATE POLICY contract_is_visible ON effect AS RESTRICTIVE FOR INSERT
    WITH CHECK (EXISTS (SELECT FROM contract WHERE contract.contract_id = effect.contract_id)
                AND EXISTS (SELECT FROM contract
                             WHERE contract.contract_id = effect.presented_contract_id));
CREATE POLICY contract_is_visible ON effect_open AS RESTRICTIVE FOR INSERT
    WITH CHECK (EXISTS (SELECT FROM contract
                         WHERE contract.contract_id = effect_open.presented_contract_id))
"""

# A revoked credential comes back under a new version alone: what was bound to the old one stays refused.
_REVOCATION = """
ALTER TABLE credential ADD COLUMN revoked_at timestamptz;
GRANT UPDATE (revoked_at) ON credential TO tallystick_service;
CREATE FUNCTION credential_goes_on() RETURNS trigger
LANGUAGE plpgsql SET search_path = public, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'version % of credential % does not come back', OLD.version, OLD.name
        USING ERRCODE = 'check_violation', CONSTRAINT = 'credential_goes_on';
END
$$;
CREATE TRIGGER credential_goes_on
    BEFORE UPDATE ON credential FOR EACH ROW
    WHEN (NEW.version < OLD.version
          OR (NEW.version = OLD.version AND OLD.revoked_at IS NOT NULL
              AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at))
    EXECUTE FUNCTION credential_goes_on();
REVOKE ALL ON FUNCTION credential_goes_on() FROM PUBLIC
"""

# What other tenants said of a contract has no place in the schema before.
_WITHOUT = """
DROP TRIGGER credential_goes_on ON credential;
DROP FUNCTION credential_goes_on();
ALTER TABLE credential DROP COLUMN revoked_at;
DROP POLICY contract_is_visible ON effect_open;
DROP POLICY contract_is_visible ON effect;
DROP POLICY contract_is_visible ON pin;
DROP POLICY contract_is_visible ON credential_binding;
DELETE FROM credential_binding AS binding
 USING contract
 WHERE contract.contract_id = binding.contract_id AND contract.tenant_id <> binding.tenant_id;
ALTER TABLE credential_binding
    DROP CONSTRAINT credential_binding_contract_id_fkey,
    DROP CONSTRAINT credential_binding_pkey,
    ADD CONSTRAINT credential_binding_pkey PRIMARY KEY (contract_id),
    ADD CONSTRAINT credential_binding_tenant_id_contract_id_fkey FOREIGN KEY (tenant_id, contract_id)
        REFERENCES contract (tenant_id, contract_id);
DROP POLICY shared_read ON contract_content;
DROP POLICY shared_read ON contract_closing;
DROP POLICY shared_lock ON contract_state;
DROP POLICY shared_read ON contract_state;
DROP POLICY shared_read ON contract;
DROP TABLE contract_share_acceptance;
DROP FUNCTION shares_offered();
DROP FUNCTION shared_contracts(text, text);
DROP FUNCTION share_of(uuid);
DROP INDEX contract_tenant_id_contract_digest_idx;
DROP TABLE contract_share
"""


def upgrade() -> None:
    for statement in (
        _CONTRACT_SHARE,
        _ACCEPTANCE,
        _SHARES,
        _POLICIES,
        _BINDING,
        _EFFECTS,
        _REVOCATION,
    ):
        op.execute(statement)


def downgrade() -> None:
    op.execute(_WITHOUT)
