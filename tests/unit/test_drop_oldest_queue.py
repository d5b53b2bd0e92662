"""The queue that drops its oldest items, and what the queues that are made of it share."""

import threading

import pytest

from spectrod.drop_oldest_queue import DropOldestQueue


class Summing(DropOldestQueue[int]):
    """Adds what was dropped to the next item, as gaps are reported."""

    total = 0

    def _drop(self, item):
        self.total += item
        return item

    def _pass_on(self, item):
        total, self.total = self.total, 0
        return item + total


def test_items_come_out_in_order_and_the_oldest_are_dropped():
    """By number, where no size is given."""
    queue = DropOldestQueue(3)
    assert queue.take() is None
    queue.put(*range(5))
    assert (len(queue), queue.dropped, queue.peak) == (3, 2, 3)
    assert list(iter(queue.take, None)) == [2, 3, 4]


@pytest.mark.parametrize("size", [7, 100])
def test_one_item_fits_whatever_its_size(size):
    """Everything before it goes, and the bound holds again for the next."""
    queue = DropOldestQueue(6, len)
    for item in ("a", "bc", "x" * size):
        queue.put(item)
    assert (len(queue), queue.dropped, queue.peak) == (1, 2, size)
    queue.put("d")
    assert list(iter(queue.take, None)) == ["d"]


def test_a_drop_is_reported_by_the_next_item_once():
    """Whether that one was there already or comes later, and with what it reports itself."""
    queue = Summing(2)
    queue.put(1, 2, 3, 4)
    assert (queue.take(), queue.take(), queue.dropped) == (1 + 2 + 3, 4, 3)
    queue = Summing(5, lambda item: item)
    queue.put(3, 50)
    assert (queue.take(), queue.take()) == (53, None)


def test_nothing_is_lost_or_counted_twice_between_two_threads():
    """What is taken and what is dropped add up to what was put in."""
    queue, taken, is_over = Summing(8), [], threading.Event()

    def take():
        while not is_over.is_set() or len(queue):
            if (item := queue.take()) is not None:
                taken.append(item)

    thread = threading.Thread(target=take)
    thread.start()
    for _ in range(3000):
        queue.put(1, 1)
    is_over.set()
    thread.join()
    assert sum(taken) == 6000
    assert len(taken) + queue.dropped == 6000
