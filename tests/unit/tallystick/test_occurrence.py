"""Equal calls of a run: which of them are one, and which another."""

from concurrent.futures import ThreadPoolExecutor

from tallystick.runtime.occurrence import Occurrences

CALL, OTHER = b"a", b"b"


def test_a_call_keeps_its_number_until_it_is_over():
    occurrences = Occurrences()
    for is_shared in (True, False):
        for _ in range(3):
            assert occurrences.take(CALL, is_shared=is_shared) == 1
            occurrences.give_back(CALL, 1, is_over=False)
    assert occurrences.take(CALL, is_shared=True) == 1
    occurrences.give_back(CALL, 1, is_over=True)
    assert occurrences.take(CALL, is_shared=True) == 2
    assert occurrences.take(OTHER, is_shared=True) == 1


def test_equal_calls_at_once_are_one_only_where_they_are_shared():
    occurrences = Occurrences()
    assert [occurrences.take(CALL, is_shared=True) for _ in range(3)] == [1, 1, 1]
    assert [occurrences.take(OTHER, is_shared=False) for _ in range(3)] == [1, 2, 3]
    occurrences.give_back(OTHER, 2, is_over=False)
    assert [occurrences.take(OTHER, is_shared=False) for _ in range(2)] == [2, 4]


def test_no_two_of_many_threads_have_the_same_number():
    occurrences = Occurrences()

    def call(_: int) -> int:
        number = occurrences.take(CALL, is_shared=False)
        occurrences.give_back(CALL, number, is_over=True)
        return number

    with ThreadPoolExecutor(16) as threads:
        numbers = list(threads.map(call, range(400)))
    assert sorted(numbers) == list(range(1, 401))
