"""The audit: which transaction wrote each record, and seals over what was written.

Revision ID: 0007
"""

from alembic import op

revision = "0007"
down_revision = "0006"

# Transactions are numbered by the cluster. The number that is added is 0 until the database is restored into
# a cluster whose counter is lower: see audit_rebase.
POSITION = """
CREATE FUNCTION audit_position(transaction xid8) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN transaction::text::bigint + 0
"""

# For later migrations too: makes a table one whose rows are sealed. The service cannot say which transaction
# wrote a row: it may insert into every column but that one. The index is small and costs an insert next to
# nothing: rows are only ever appended, so a range of blocks holds a range of transactions.
_KEEP = """
CREATE FUNCTION audit_keep(kept regclass) RETURNS void
LANGUAGE plpgsql SET search_path = public, pg_temp
AS $$
DECLARE
    others  text;
BEGIN
    SELECT string_agg(quote_ident(attname), ', ') INTO others
      FROM pg_attribute
     WHERE attrelid = kept AND attnum > 0 AND NOT attisdropped;
    EXECUTE format(
        'ALTER TABLE %s ADD COLUMN written_in bigint NOT NULL DEFAULT audit_position(pg_current_xact_id())',
        kept);
    EXECUTE format(
        'CREATE INDEX %I ON %s USING brin (written_in) WITH (pages_per_range = 32, autosummarize = on)',
        kept || '_written_in_idx', kept);
    EXECUTE format('REVOKE INSERT ON %s FROM tallystick_service', kept);
    EXECUTE format('GRANT INSERT (%s) ON %s TO tallystick_service', others, kept);
END
$$
"""

# The chain stands here as keys: a seal names the number, the digest and the end of the one before it, and
# begins where that one ends.
_SEAL = """
CREATE TABLE audit_seal (
    tenant_id        uuid   NOT NULL,
    number           bigint NOT NULL,
    previous_number  bigint,
    previous         text,
    since            bigint NOT NULL,
    upto             bigint NOT NULL,
    digest           text   NOT NULL,
    statement        text   NOT NULL,
    signature        bytea  NOT NULL,
    leaf_hashes      bytea  NOT NULL,
    CONSTRAINT audit_seal_pkey PRIMARY KEY (tenant_id, number),
    CONSTRAINT audit_seal_tenant_id_number_digest_upto_key UNIQUE (tenant_id, number, digest, upto),
    CONSTRAINT audit_seal_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (tenant_id),
    CONSTRAINT audit_seal_follows_fkey FOREIGN KEY (tenant_id, previous_number, previous, since)
        REFERENCES audit_seal (tenant_id, number, digest, upto),
    CONSTRAINT audit_seal_first_is_new_check
        CHECK ((number = 1) = (previous_number IS NULL) AND (number = 1) = (previous IS NULL)
               AND (number > 1 OR since = 0)),
    CONSTRAINT audit_seal_number_rises_by_one_check CHECK (number >= 1 AND previous_number = number - 1),
    CONSTRAINT audit_seal_goes_forward_check CHECK (since < upto),
    CONSTRAINT audit_seal_signature_is_ed25519_check CHECK (length(signature) = 64),
    CONSTRAINT audit_seal_digest_is_true_check
        CHECK (digest = 'sha256:' || encode(sha256(convert_to(statement, 'UTF8')), 'hex')),
    CONSTRAINT audit_seal_statement_says_the_same_check
        CHECK (statement::jsonb @> jsonb_build_object(
            'tenant', tenant_id, 'number', number, 'previous', previous, 'from', since, 'to', upto)
            AND (statement::jsonb -> 'leaves')::bigint * 32 = length(leaf_hashes))
);
CREATE INDEX audit_seal_upto_idx ON audit_seal (upto);
ALTER TABLE audit_seal ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON audit_seal USING (tenant_id = current_tenant())
"""

_PROGRESS = """
CREATE TABLE audit_progress (
    single     boolean NOT NULL DEFAULT true,
    sealed_to  bigint  NOT NULL,
    CONSTRAINT audit_progress_pkey PRIMARY KEY (single)
);
INSERT INTO audit_progress (sealed_to) VALUES (0)
"""

# Row-level security hides who has written. Every table that has the column is asked.
_TENANTS_TO_SEAL = """
CREATE FUNCTION tenants_to_seal()
RETURNS TABLE (tenant_id uuid, tenant text, since bigint, horizon bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    first  bigint := (SELECT sealed_to FROM audit_progress);
    until  bigint := audit_position(pg_snapshot_xmin(pg_current_snapshot()));
    asked  text;
BEGIN
    SELECT string_agg(
               format('SELECT tenant_id FROM %s WHERE written_in >= $1 AND written_in < $2', class.oid::regclass),
               ' UNION ')
      INTO asked
      FROM pg_class AS class
      JOIN pg_attribute ON attrelid = class.oid AND attname = 'written_in' AND NOT attisdropped
     WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition;
    RETURN QUERY EXECUTE format(
        'SELECT tenant.tenant_id, tenant.slug, $1, $2 FROM tenant JOIN (%s) AS written USING (tenant_id)', asked)
        USING first, until;
END
$$
"""

# Notes how far all is sealed, which nobody else can say: up to the first record that no seal of its tenant
# covers, and never past a transaction that has not ended.
_NOTE_SEALED = """
CREATE FUNCTION note_sealed() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    first     bigint := (SELECT sealed_to FROM audit_progress);
    until     bigint := audit_position(pg_snapshot_xmin(pg_current_snapshot()));
    asked     text;
    unsealed  bigint;
BEGIN
    SELECT string_agg(
               format('SELECT tenant_id, written_in FROM %s WHERE written_in >= $1 AND written_in < $2',
                      class.oid::regclass),
               ' UNION ALL ')
      INTO asked
      FROM pg_class AS class
      JOIN pg_attribute ON attrelid = class.oid AND attname = 'written_in' AND NOT attisdropped
     WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition;
    EXECUTE format(
        'SELECT min(written_in) FROM (%s) AS record'
        ' LEFT JOIN (SELECT tenant_id, max(upto) AS upto FROM audit_seal WHERE upto > $1 GROUP BY 1) AS seal'
        ' USING (tenant_id) WHERE written_in >= coalesce(upto, $1)', asked)
        INTO unsealed USING first, until;
    until := least(unsealed, until);
    UPDATE audit_progress SET sealed_to = until WHERE sealed_to < until;
END
$$
"""

# A dump that is restored into another cluster keeps its numbers, and that cluster may count lower: what is
# written there would fall into batches that are sealed already. Each start asks for this before anything is
# written: from then on, numbers begin above all that were given. Tells whether that was needed.
_REBASE = """
CREATE FUNCTION audit_rebase() RETURNS boolean
LANGUAGE plpgsql SET search_path = public, pg_temp
AS $$
DECLARE
    reached  bigint;
BEGIN
    LOCK TABLE audit_seal IN SHARE ROW EXCLUSIVE MODE;
    SELECT max(upto) INTO reached FROM audit_seal;
    IF reached IS NULL OR audit_position(pg_current_xact_id()) >= reached THEN
        RETURN false;
    END IF;
    EXECUTE format(
        'CREATE OR REPLACE FUNCTION audit_position(transaction xid8) RETURNS bigint'
        ' LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN transaction::text::bigint + %s',
        ((reached >> 40) + 1) << 40);
    RETURN true;
END
$$
"""

_PRIVILEGES = """
GRANT SELECT, INSERT ON audit_seal TO tallystick_service;
GRANT SELECT ON audit_progress TO tallystick_service;
REVOKE ALL ON FUNCTION audit_keep(regclass), audit_rebase(), note_sealed(), tenants_to_seal() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION note_sealed(), tenants_to_seal() TO tallystick_service
"""

_TABLES = (
    "contract",
    "contract_content",
    "effect",
    "effect_attempt",
    "effect_evidence",
    "effect_outcome",
    "event",
    "registry_event",
)


def upgrade() -> None:
    for statement in (
        POSITION,
        _KEEP,
        _SEAL,
        _PROGRESS,
        _TENANTS_TO_SEAL,
        _NOTE_SEALED,
        _REBASE,
        _PRIVILEGES,
        *(f"SELECT audit_keep('{table}')" for table in _TABLES),
    ):
        op.execute(statement)


def downgrade() -> None:
    for table in _TABLES:
        # This takes back what was granted on columns too.
        op.execute(f"REVOKE INSERT ON {table} FROM tallystick_service")
        op.execute(f"GRANT INSERT ON {table} TO tallystick_service")
        op.execute(f"ALTER TABLE {table} DROP COLUMN written_in")
    op.execute(
        "DROP FUNCTION audit_rebase(), note_sealed(), tenants_to_seal(), audit_keep(regclass)"
    )
    op.execute("DROP TABLE audit_progress, audit_seal")
    op.execute("DROP FUNCTION audit_position(xid8)")
