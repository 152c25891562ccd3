"""Policies: their revisions, the one that is in force of each, and to whom each is assigned.

Revision ID: 0008
"""

from alembic import op

revision = "0008"
down_revision = "0007"

# The document is stored as its RFC 8785 bytes, so the database itself can hold the digest to the content. The
# source is the text as it came, with its comments.
_POLICY_REVISION = """
CREATE TABLE policy_revision (
    tenant_id          uuid        NOT NULL,
    policy             text        NOT NULL,
    revision           integer     NOT NULL,
    previous_revision  integer,
    digest             text        NOT NULL,
    document           text        NOT NULL,
    source             text        NOT NULL,
    published_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    published_by       text        NOT NULL,
    CONSTRAINT policy_revision_pkey PRIMARY KEY (tenant_id, policy, revision),
    CONSTRAINT policy_revision_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (tenant_id),
    CONSTRAINT policy_revision_follows_fkey FOREIGN KEY (tenant_id, policy, previous_revision)
        REFERENCES policy_revision (tenant_id, policy, revision),
    CONSTRAINT policy_revision_rises_by_one_check
        CHECK (revision >= 1 AND (revision = 1) = (previous_revision IS NULL)
               AND previous_revision = revision - 1),
    CONSTRAINT policy_revision_policy_is_a_label_check CHECK (policy ~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$'),
    CONSTRAINT policy_revision_digest_is_true_check
        CHECK (digest = 'sha256:' || encode(sha256(convert_to(document, 'UTF8')), 'hex'))
)
"""

# The revision that counts. What was superseded comes back as a new revision alone.
_POLICY_HEAD = """
CREATE TABLE policy_head (
    tenant_id  uuid    NOT NULL,
    policy     text    NOT NULL,
    revision   integer NOT NULL,
    CONSTRAINT policy_head_pkey PRIMARY KEY (tenant_id, policy),
    CONSTRAINT policy_head_tenant_id_policy_revision_fkey FOREIGN KEY (tenant_id, policy, revision)
        REFERENCES policy_revision (tenant_id, policy, revision)
);
CREATE FUNCTION policy_head_goes_on() RETURNS trigger
LANGUAGE plpgsql SET search_path = public, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'policy % is at revision %', OLD.policy, OLD.revision
        USING ERRCODE = 'check_violation', CONSTRAINT = 'policy_head_goes_on';
END
$$;
CREATE TRIGGER policy_head_goes_on
    BEFORE UPDATE ON policy_head FOR EACH ROW
    WHEN (NEW.revision <> OLD.revision + 1)
    EXECUTE FUNCTION policy_head_goes_on();
REVOKE ALL ON FUNCTION policy_head_goes_on() FROM PUBLIC
"""

# The principal '*' is everybody who has none of their own.
_POLICY_ASSIGNMENT = """
CREATE TABLE policy_assignment (
    tenant_id    uuid        NOT NULL,
    principal    text        NOT NULL,
    policy       text        NOT NULL,
    assigned_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    assigned_by  text        NOT NULL,
    CONSTRAINT policy_assignment_pkey PRIMARY KEY (tenant_id, principal),
    CONSTRAINT policy_assignment_tenant_id_policy_fkey FOREIGN KEY (tenant_id, policy)
        REFERENCES policy_head (tenant_id, policy)
);
CREATE INDEX policy_assignment_tenant_id_policy_idx ON policy_assignment (tenant_id, policy)
"""

_TABLES = ("policy_revision", "policy_head", "policy_assignment")

_PRIVILEGES = """
GRANT SELECT, INSERT ON policy_revision TO tallystick_service;
GRANT SELECT, INSERT, UPDATE (revision) ON policy_head TO tallystick_service;
GRANT SELECT, INSERT, UPDATE (policy, assigned_at, assigned_by), DELETE ON policy_assignment
    TO tallystick_service;
SELECT audit_keep('policy_revision')
"""


def upgrade() -> None:
    for statement in (_POLICY_REVISION, _POLICY_HEAD, _POLICY_ASSIGNMENT, _PRIVILEGES):
        op.execute(statement)
    for table in _TABLES:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY tenant_isolation ON {table} USING (tenant_id = current_tenant())"
        )


def downgrade() -> None:
    op.execute("DROP TABLE policy_assignment, policy_head, policy_revision")
    op.execute("DROP FUNCTION policy_head_goes_on()")
