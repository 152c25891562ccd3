"""Merkle trees as in RFC 6962, section 2.1 (the same as in RFC 9162): SHA-256 over ordered leaves.

A leaf and a node are hashed with different first bytes, so that no node can be passed off as a
leaf. Pure.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final

HASH_BYTES: Final = 32


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of one leaf's content."""
    return hashlib.sha256(b"\0" + data).digest()


def _node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


class Tree:
    """A tree that leaves are added to, at its right end; it keeps one hash a level."""

    def __init__(self) -> None:
        # Whole subtrees from left to right, each with its height: heights fall strictly.
        self._subtrees: list[tuple[int, bytes]] = []

    def add(self, leaf: bytes) -> None:
        """Add the hash of a leaf."""
        height, node = 0, leaf
        while self._subtrees and self._subtrees[-1][0] == height:
            node = _node_hash(self._subtrees.pop()[1], node)
            height += 1
        self._subtrees.append((height, node))

    def root(self) -> bytes:
        """Return the root of what was added until now."""
        if not self._subtrees:
            return hashlib.sha256(b"").digest()
        *lefts, (_, node) = self._subtrees
        for _, left in reversed(lefts):
            node = _node_hash(left, node)
        return node


def tree_root(leaves: Iterable[bytes]) -> bytes:
    """Return the root over the hashes of leaves, in their order."""
    tree = Tree()
    for leaf in leaves:
        tree.add(leaf)
    return tree.root()


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the hashes that lead from one leaf to the root, the lowest first (section 2.1.1)."""
    assert 0 <= index < len(leaves)
    if len(leaves) == 1:
        return []
    split = _split(len(leaves))
    left, right = leaves[:split], leaves[split:]
    if index < split:
        return [*inclusion_proof(left, index), tree_root(right)]
    return [*inclusion_proof(right, index - split), tree_root(left)]


def proven_root(leaf: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes | None:
    """Return the root of a tree of ``size`` leaves that a proof leads to from its leaf ``index``.

    None for a proof that has not the length for this place. Whoever asks compares the root with the
    one that was signed.
    """
    if not 0 <= index < size:
        return None
    if size == 1:
        return leaf if not proof else None
    if not proof:
        return None
    *lower, top = proof
    split = _split(size)
    if index < split:
        left, right = proven_root(leaf, index, split, lower), top
    else:
        left, right = top, proven_root(leaf, index - split, size - split, lower)
    return None if left is None or right is None else _node_hash(left, right)


def _split(size: int) -> int:
    """Return the largest power of two that is smaller than ``size``."""
    return 1 << (size - 1).bit_length() - 1
