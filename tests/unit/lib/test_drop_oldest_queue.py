"""The queue that drops its oldest items, and the behaviour shared by queues made of it."""

import threading

import pytest

from spectrod.lib.drop_oldest_queue import DropOldestQueue


class Summing(DropOldestQueue[int]):
    """A queue that adds dropped items to the next one, as gaps are reported."""

    total = 0

    def _drop(self, item):
        self.total += item
        return item

    def _pass_on(self, item):
        total, self.total = self.total, 0
        return item + total


def test_items_come_out_in_order_and_the_oldest_are_dropped():
    """Items come out in order, and beyond the bound, counted in items by default, the oldest go."""
    queue = DropOldestQueue(3)
    assert queue.take() is None
    queue.put(*range(5))
    assert (len(queue), queue.dropped, queue.peak) == (3, 2, 3)
    assert list(iter(queue.take, None)) == [2, 3, 4]


@pytest.mark.parametrize("size", [7, 100])
def test_one_item_fits_whatever_its_size(size):
    """One item of any size fits; everything before it is dropped, and the bound applies again."""
    queue = DropOldestQueue(6, len)
    for item in ("a", "bc", "x" * size):
        queue.put(item)
    assert (len(queue), queue.dropped, queue.peak) == (1, 2, size)
    queue.put("d")
    assert list(iter(queue.take, None)) == ["d"]


def test_a_drop_is_reported_by_the_next_item_once():
    """A drop is reported once by the next item, whether that is queued already or comes later."""
    queue = Summing(2)
    queue.put(1, 2, 3, 4)
    assert (queue.take(), queue.take(), queue.dropped) == (1 + 2 + 3, 4, 3)
    queue = Summing(5, lambda item: item)
    queue.put(3, 50)
    assert (queue.take(), queue.take()) == (53, None)


def test_nothing_is_lost_or_counted_twice_between_two_threads():
    """Between two threads, taken and dropped items add up to those that were put in."""
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
