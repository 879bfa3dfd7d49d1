"""A run's place in the queue for slots, by itself."""

from rewound.actors import Slots
from rewound.runtime.owners.turns import Turns


def test_a_slot_that_came_too_late_is_given_back() -> None:
    """Lesson 10: a slot that was granted and is not wanted any more goes to others."""
    slots, woken = Slots(2), list[str]()
    slots.take(2)
    turns = Turns(slots, lambda: woken.append("granted"))
    assert turns.take(2) == 0
    slots.give(2)
    assert (woken, slots.in_use) == (["granted", "granted"], 2)
    assert turns.take(1) == 1
    assert slots.in_use == 1


def test_leaving_the_queue() -> None:
    """Lesson 10: whoever leaves the queue is granted nothing."""
    slots = Slots(1)
    slots.take(1)
    turns = Turns(slots, lambda: None)
    turns.take(1)
    turns.close()
    slots.give(1)
    assert (slots.in_use, slots.waiting) == (0, 0)


def test_slots_that_were_taken_for_it() -> None:
    """Slots that were taken beforehand are the first to be used."""
    slots = Slots(3)
    slots.take(2)
    turns = Turns(slots, lambda: None, granted=2)
    assert turns.take(3) == 3
    assert slots.in_use == 3
