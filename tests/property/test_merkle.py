"""Merkle trees: RFC 6962's definition, its published vectors, and what nobody can forge."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.merkle import HASH_BYTES, inclusion_proof, leaf_hash, proven_root, tree_root

HASHES = st.binary(min_size=HASH_BYTES, max_size=HASH_BYTES)
TREES = st.lists(HASHES, min_size=1, max_size=70)

# The eight leaves, and the roots over the first n of them, that Certificate Transparency's own
# implementations are tested with.
LEAVES = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


def defined(leaves: list[bytes]) -> bytes:
    """Return MTH as section 2.1 defines it, over hashes of leaves."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return node(defined(leaves[:split]), defined(leaves[split:]))


@pytest.mark.parametrize("size", range(len(ROOTS)))
def test_the_published_roots(size: int):
    assert tree_root(map(leaf_hash, LEAVES[:size])).hex() == ROOTS[size]


@given(st.lists(HASHES, max_size=70))
def test_the_root_is_as_defined(leaves: list[bytes]):
    assert tree_root(leaves) == defined(leaves)


@given(TREES, st.data())
def test_every_leaf_is_proven(leaves: list[bytes], data: st.DataObject):
    index = data.draw(st.integers(0, len(leaves) - 1))
    proof = inclusion_proof(leaves, index)
    assert len(proof) <= (len(leaves) - 1).bit_length()
    assert proven_root(leaves[index], index, len(leaves), proof) == tree_root(leaves)


@given(TREES, HASHES, st.data())
def test_nothing_else_is_proven(leaves: list[bytes], other: bytes, data: st.DataObject):
    size, root = len(leaves), tree_root(leaves)
    index = data.draw(st.integers(0, size - 1))
    proof = inclusion_proof(leaves, index)
    if other != leaves[index]:
        assert proven_root(other, index, size, proof) != root
    elsewhere = data.draw(st.integers(-1, size))
    if elsewhere not in range(size) or leaves[elsewhere] != leaves[index]:
        assert proven_root(leaves[index], elsewhere, size, proof) != root
    assert proven_root(leaves[index], index, size, [*proof, other]) != root
    if proof:
        changed = data.draw(st.integers(0, len(proof) - 1))
        assert proven_root(leaves[index], index, size, proof[:-1]) != root
        if proof[changed] != other:
            forged = [*proof[:changed], other, *proof[changed + 1 :]]
            assert proven_root(leaves[index], index, size, forged) != root


@given(TREES, st.data())
def test_a_tree_is_another_with_any_change(leaves: list[bytes], data: st.DataObject):
    root = tree_root(leaves)
    index = data.draw(st.integers(0, len(leaves) - 1))
    assert tree_root(leaves[:index] + leaves[index + 1 :]) != root
    assert tree_root([*leaves[:index], leaves[index], *leaves[index:]]) != root
    moved = [*leaves[:index], *leaves[index + 1 :], leaves[index]]
    assert (tree_root(moved) == root) == (moved == leaves)


@given(st.lists(st.binary(max_size=80), min_size=2, max_size=40))
def test_no_node_passes_for_a_leaf(contents: list[bytes]):
    leaves = [leaf_hash(content) for content in contents]
    root = tree_root(leaves)
    # The second preimage of trees without domains: the level above, given out as the leaves.
    pairs = [leaves[at : at + 2] for at in range(0, len(leaves), 2)]
    assert tree_root([leaf_hash(b"".join(pair)) for pair in pairs]) != root
    assert leaf_hash(b"".join(leaves[:2])) != node(*leaves[:2])
    assert leaf_hash(b"\1" + b"".join(leaves[:2])) != node(*leaves[:2])
