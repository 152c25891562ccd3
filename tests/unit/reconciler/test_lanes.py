"""How many questions may be open: for a contract, for a tenant at one place, and at one place."""

from uuid import UUID

from reconciler.lanes import CONTRACT_MAX, PLACE_MAX, TENANT_MAX, Lane, Lanes


def a_lane(tenant: int = 1, contract: int = 1, place: str = "bank:443") -> Lane:
    return Lane(UUID(int=tenant), UUID(int=contract), place)


def test_a_contract_leaves_room_for_another_one():
    lanes = Lanes()
    assert lanes.enter(a_lane(contract=1)) == CONTRACT_MAX
    assert lanes.enter(a_lane(contract=1)) == 0
    assert lanes.enter(a_lane(contract=2)) == TENANT_MAX - CONTRACT_MAX > 0
    assert lanes.enter(a_lane(contract=3)) == 0


def test_a_tenant_leaves_room_for_another_one_and_for_other_places():
    lanes = Lanes()
    for contract in range(10):
        lanes.enter(a_lane(contract=contract))
    assert lanes.enter(a_lane(tenant=2)) == CONTRACT_MAX, "of the same contract, shared"
    assert lanes.enter(a_lane(contract=10, place="mail:443")) == CONTRACT_MAX


def test_a_place_is_asked_no_more_than_it_may_be():
    lanes = Lanes()
    taken = [lanes.enter(a_lane(tenant=tenant)) for tenant in range(20)]
    assert sum(taken) == PLACE_MAX
    assert lanes.enter(a_lane(contract=2, place="mail:443")) == CONTRACT_MAX


def test_room_that_is_left_is_there_again():
    lanes = Lanes()
    lanes.enter(a_lane(contract=1))
    lanes.enter(a_lane(contract=2))
    lanes.leave(a_lane(contract=2), 3)
    assert lanes.enter(a_lane(contract=1)) == 0
    assert lanes.enter(a_lane(contract=3)) == 3
