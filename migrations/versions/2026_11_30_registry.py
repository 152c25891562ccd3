"""The registry: contracts (content and publication apart), their state, credentials, grants, pins.

Revision ID: 0002
"""

from alembic import op

revision = "0002"
down_revision = "0001"

# The document is stored as its RFC 8785 bytes, so the database itself can hold the digest to the content.
_CONTRACT_CONTENT = """
CREATE TABLE contract_content (
    tenant_id        uuid NOT NULL,
    contract_digest  text NOT NULL,
    schema_hash      text NOT NULL,
    prompt_hash      text NOT NULL,
    document         text NOT NULL,
    CONSTRAINT contract_content_pkey PRIMARY KEY (tenant_id, contract_digest),
    CONSTRAINT contract_content_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (tenant_id),
    CONSTRAINT contract_content_digest_is_true_check
        CHECK (contract_digest = 'sha256:' || encode(sha256(convert_to(document, 'UTF8')), 'hex')),
    CONSTRAINT contract_content_schema_hash_is_sha256_check CHECK (schema_hash ~ '^sha256:[0-9a-f]{64}$'),
    CONSTRAINT contract_content_prompt_hash_is_sha256_check CHECK (prompt_hash ~ '^sha256:[0-9a-f]{64}$')
)
"""

_CONTRACT = """
CREATE TABLE contract (
    tenant_id        uuid        NOT NULL,
    contract_id      uuid        NOT NULL,
    name             text        NOT NULL,
    version          text        NOT NULL,
    contract_digest  text        NOT NULL,
    reviewer         text,
    review_reason    text,
    published_at     timestamptz NOT NULL DEFAULT now(),
    published_by     text        NOT NULL,
    CONSTRAINT contract_pkey PRIMARY KEY (contract_id),
    CONSTRAINT contract_tenant_id_contract_id_key UNIQUE (tenant_id, contract_id),
    CONSTRAINT contract_tenant_id_name_version_key UNIQUE (tenant_id, name, version),
    CONSTRAINT contract_tenant_id_contract_digest_fkey FOREIGN KEY (tenant_id, contract_digest)
        REFERENCES contract_content (tenant_id, contract_digest),
    CONSTRAINT contract_version_has_three_parts_check
        CHECK (version ~ '^(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)$'),
    CONSTRAINT contract_review_is_whole_check CHECK ((reviewer IS NULL) = (review_reason IS NULL))
)
"""

_CONTRACT_STATE = """
CREATE TABLE contract_state (
    contract_id  uuid        NOT NULL,
    tenant_id    uuid        NOT NULL,
    lifecycle    text        NOT NULL DEFAULT 'ACTIVE',
    suspended    boolean     NOT NULL DEFAULT false,
    changed_at   timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT contract_state_pkey PRIMARY KEY (contract_id),
    CONSTRAINT contract_state_tenant_id_contract_id_fkey FOREIGN KEY (tenant_id, contract_id)
        REFERENCES contract (tenant_id, contract_id),
    CONSTRAINT contract_state_lifecycle_is_known_check
        CHECK (lifecycle IN ('ACTIVE', 'DEPRECATED', 'MIGRATING', 'RETIRING', 'RETIRED'))
)
"""

# A retired version never comes back: what referred to it was told so.
_RETIRED_STAYS = """
CREATE FUNCTION retired_stays() RETURNS trigger
LANGUAGE plpgsql SET search_path = public, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'contract % is retired', OLD.contract_id
        USING ERRCODE = 'check_violation', CONSTRAINT = 'retired_stays';
END
$$;
CREATE TRIGGER contract_state_retired_stays
    BEFORE UPDATE ON contract_state FOR EACH ROW
    WHEN (OLD.lifecycle = 'RETIRED' AND NEW.lifecycle <> 'RETIRED')
    EXECUTE FUNCTION retired_stays();
REVOKE ALL ON FUNCTION retired_stays() FROM PUBLIC
"""

# A closing mark is a row of its own: an UPDATE of the state row would wait behind every dispatch that holds
# that row FOR SHARE, and starve.
_CONTRACT_CLOSING = """
CREATE TABLE contract_closing (
    contract_id  uuid        NOT NULL,
    tenant_id    uuid        NOT NULL,
    closed_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    closed_by    text        NOT NULL,
    reason       text        NOT NULL,
    CONSTRAINT contract_closing_pkey PRIMARY KEY (contract_id),
    CONSTRAINT contract_closing_tenant_id_contract_id_fkey FOREIGN KEY (tenant_id, contract_id)
        REFERENCES contract (tenant_id, contract_id)
)
"""

_CREDENTIAL = """
CREATE TABLE credential (
    tenant_id   uuid        NOT NULL,
    name        text        NOT NULL,
    version     integer     NOT NULL DEFAULT 1,
    rotated_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT credential_pkey PRIMARY KEY (tenant_id, name),
    CONSTRAINT credential_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (tenant_id),
    CONSTRAINT credential_version_is_positive_check CHECK (version >= 1)
)
"""

_CREDENTIAL_BINDING = """
CREATE TABLE credential_binding (
    contract_id  uuid        NOT NULL,
    tenant_id    uuid        NOT NULL,
    credential   text        NOT NULL,
    version      integer     NOT NULL,
    attested_at  timestamptz NOT NULL DEFAULT now(),
    attested_by  text        NOT NULL,
    CONSTRAINT credential_binding_pkey PRIMARY KEY (contract_id),
    CONSTRAINT credential_binding_tenant_id_contract_id_fkey FOREIGN KEY (tenant_id, contract_id)
        REFERENCES contract (tenant_id, contract_id),
    CONSTRAINT credential_binding_credential_fkey FOREIGN KEY (tenant_id, credential)
        REFERENCES credential (tenant_id, name)
)
"""

_CAPABILITY_GRANT = """
CREATE TABLE capability_grant (
    tenant_id   uuid        NOT NULL,
    principal   text        NOT NULL,
    capability  text        NOT NULL,
    granted_at  timestamptz NOT NULL DEFAULT now(),
    granted_by  text        NOT NULL,
    revoked_at  timestamptz,
    CONSTRAINT capability_grant_pkey PRIMARY KEY (tenant_id, principal, capability),
    CONSTRAINT capability_grant_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (tenant_id)
)
"""

_PIN = """
CREATE TABLE pin (
    pin_id       uuid        NOT NULL,
    tenant_id    uuid        NOT NULL,
    contract_id  uuid        NOT NULL,
    holder       text        NOT NULL,
    expires_at   timestamptz NOT NULL,
    CONSTRAINT pin_pkey PRIMARY KEY (pin_id),
    CONSTRAINT pin_contract_id_fkey FOREIGN KEY (contract_id) REFERENCES contract (contract_id)
);
CREATE INDEX pin_contract_id_expires_at_idx ON pin (contract_id, expires_at)
"""

_REGISTRY_EVENT = """
CREATE TABLE registry_event (
    tenant_id  uuid        NOT NULL,
    event_id   uuid        NOT NULL,
    kind       text        NOT NULL,
    subject    text        NOT NULL,
    actor      text        NOT NULL,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    facts      jsonb       NOT NULL DEFAULT '{}',
    CONSTRAINT registry_event_pkey PRIMARY KEY (tenant_id, event_id),
    CONSTRAINT registry_event_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (tenant_id)
)
"""

_TABLES = (
    "contract_content",
    "contract",
    "contract_state",
    "contract_closing",
    "credential",
    "credential_binding",
    "capability_grant",
    "pin",
    "registry_event",
)

# What the service's role may do, and nothing beyond it: published rows are never updated or deleted.
_PRIVILEGES = """
GRANT SELECT, INSERT ON contract_content, contract, registry_event TO tallystick_service;
GRANT SELECT, INSERT, UPDATE (lifecycle, suspended, changed_at) ON contract_state TO tallystick_service;
GRANT SELECT, INSERT, DELETE ON contract_closing TO tallystick_service;
GRANT SELECT, INSERT, UPDATE (version, rotated_at) ON credential TO tallystick_service;
GRANT SELECT, INSERT, UPDATE (version, attested_at, attested_by) ON credential_binding TO tallystick_service;
GRANT SELECT, INSERT, UPDATE (granted_at, granted_by, revoked_at) ON capability_grant TO tallystick_service;
GRANT SELECT, INSERT, DELETE, UPDATE (expires_at) ON pin TO tallystick_service
"""


def upgrade() -> None:
    for statement in (
        _CONTRACT_CONTENT,
        _CONTRACT,
        _CONTRACT_STATE,
        _RETIRED_STAYS,
        _CONTRACT_CLOSING,
        _CREDENTIAL,
        _CREDENTIAL_BINDING,
        _CAPABILITY_GRANT,
        _PIN,
        _REGISTRY_EVENT,
        _PRIVILEGES,
    ):
        op.execute(statement)
    for table in _TABLES:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY tenant_isolation ON {table} USING (tenant_id = current_tenant())"
        )


def downgrade() -> None:
    for table in reversed(_TABLES):
        op.execute(f"DROP TABLE {table}")
    op.execute("DROP FUNCTION retired_stays()")
