"""Publishers' keys, signatures of contracts, and whether a tenant requires them.

Revision ID: 0006
"""

from alembic import op

revision = "0006"
down_revision = "0005"

# A key's id follows from the key: a second one of the same id has no place beside it.
_PUBLISHER_KEY = """
CREATE TABLE publisher_key (
    tenant_id   uuid        NOT NULL,
    key_id      text        NOT NULL,
    public_key  bytea       NOT NULL,
    name        text        NOT NULL,
    added_at    timestamptz NOT NULL DEFAULT now(),
    added_by    text        NOT NULL,
    revoked_at  timestamptz,
    revoked_by  text,
    reason      text,
    CONSTRAINT publisher_key_pkey PRIMARY KEY (tenant_id, key_id),
    CONSTRAINT publisher_key_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (tenant_id),
    CONSTRAINT publisher_key_is_ed25519_check CHECK (length(public_key) = 32),
    CONSTRAINT publisher_key_id_is_true_check
        CHECK (key_id = 'ed25519:' || left(encode(sha256(public_key), 'hex'), 16)),
    CONSTRAINT publisher_key_revocation_is_whole_check
        CHECK (num_nulls(revoked_at, revoked_by, reason) IN (0, 3))
)
"""

# A revoked key never comes back: what it could have signed since, nobody knows.
_REVOKED_STAYS = """
CREATE FUNCTION revoked_key_stays() RETURNS trigger
LANGUAGE plpgsql SET search_path = public, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'key % is revoked', OLD.key_id
        USING ERRCODE = 'check_violation', CONSTRAINT = 'revoked_key_stays';
END
$$;
CREATE TRIGGER publisher_key_revoked_key_stays
    BEFORE UPDATE ON publisher_key FOR EACH ROW
    WHEN (OLD.revoked_at IS NOT NULL)
    EXECUTE FUNCTION revoked_key_stays();
REVOKE ALL ON FUNCTION revoked_key_stays() FROM PUBLIC
"""

# Whoever uses a contract keeps the signatures that it trusts, also of one that is shared with it.
_CONTRACT_SIGNATURE = """
CREATE TABLE contract_signature (
    tenant_id    uuid        NOT NULL,
    contract_id  uuid        NOT NULL,
    key_id       text        NOT NULL,
    signature    bytea       NOT NULL,
    signed_at    timestamptz NOT NULL DEFAULT now(),
    signed_by    text        NOT NULL,
    CONSTRAINT contract_signature_pkey PRIMARY KEY (tenant_id, contract_id, key_id),
    CONSTRAINT contract_signature_contract_id_fkey FOREIGN KEY (contract_id)
        REFERENCES contract (contract_id),
    CONSTRAINT contract_signature_key_fkey FOREIGN KEY (tenant_id, key_id)
        REFERENCES publisher_key (tenant_id, key_id),
    CONSTRAINT contract_signature_is_ed25519_check CHECK (length(signature) = 64)
)
"""

# The row is the requirement, as a closing mark is the closing.
_SIGNATURE_REQUIREMENT = """
CREATE TABLE signature_requirement (
    tenant_id    uuid        NOT NULL,
    required_at  timestamptz NOT NULL DEFAULT now(),
    required_by  text        NOT NULL,
    CONSTRAINT signature_requirement_pkey PRIMARY KEY (tenant_id),
    CONSTRAINT signature_requirement_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (tenant_id)
)
"""

_TABLES = ("publisher_key", "contract_signature", "signature_requirement")

_PRIVILEGES = """
GRANT SELECT, INSERT, UPDATE (revoked_at, revoked_by, reason) ON publisher_key TO tallystick_service;
GRANT SELECT, INSERT ON contract_signature TO tallystick_service;
GRANT SELECT, INSERT, DELETE ON signature_requirement TO tallystick_service
"""

_VISIBLE = """
CREATE POLICY contract_is_visible ON contract_signature AS RESTRICTIVE FOR INSERT
    WITH CHECK (EXISTS (SELECT FROM contract
                         WHERE contract.contract_id = contract_signature.contract_id))
"""


def upgrade() -> None:
    for statement in (
        _PUBLISHER_KEY,
        _REVOKED_STAYS,
        _CONTRACT_SIGNATURE,
        _SIGNATURE_REQUIREMENT,
        _PRIVILEGES,
        _VISIBLE,
    ):
        op.execute(statement)
    for table in _TABLES:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY tenant_isolation ON {table} USING (tenant_id = current_tenant())"
        )


def downgrade() -> None:
    op.execute("DROP TABLE signature_requirement, contract_signature, publisher_key")
    op.execute("DROP FUNCTION revoked_key_stays()")
