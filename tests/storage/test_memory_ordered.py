"""The sorted index of the memory backend."""

from hypothesis import given
from hypothesis import strategies as st

from rewound.storage.memory.ordered import Ordered

keys = st.tuples(st.integers(0, 9), st.sampled_from("abc"))


@given(st.sets(keys), st.data())
def test_index_iterates_in_both_directions(present: set[tuple[int, str]], data: st.DataObject) -> None:
    """From any place, there or not, up and down, without the keys that were discarded."""
    index = Ordered[tuple[int, str]]()
    for key in present:
        index.add(key)
    gone = data.draw(st.sets(st.sampled_from(sorted(present)))) if present else set[tuple[int, str]]()
    for key in gone:
        index.discard(key)
    left, place = sorted(present - gone), data.draw(st.none() | keys)
    assert list(index.after(place)) == [key for key in left if place is None or key > place]
    assert list(index.before(place)) == [key for key in reversed(left) if place is None or key < place]
