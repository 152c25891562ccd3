"""The approvals of all states in the order in which they are listed, however many there are.

Revision ID: 0012
"""

from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.execute(
        "CREATE INDEX approval_tenant_id_requested_at_run_id_number_idx"
        " ON approval (tenant_id, requested_at, run_id, number)"
    )


def downgrade() -> None:
    op.execute("DROP INDEX approval_tenant_id_requested_at_run_id_number_idx")
