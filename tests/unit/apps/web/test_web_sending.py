"""Long answers: pieces, and what unread ones may take together."""

import asyncio

import pytest

from spectrod.apps.web.sending import PIECE_BYTES, LongResponse, Sending

SCOPE = {"type": "http", "method": "GET", "path": "/", "headers": []}


class Deaf:
    """A peer that reads so many pieces, and then no more until it goes."""

    def __init__(self, n_pieces=0):
        self._n_left = n_pieces
        self.got = []

    async def receive(self):
        return {"type": "http.disconnect"}

    async def send(self, message):
        if message["type"] == "http.response.body":
            if not self._n_left:
                await asyncio.get_running_loop().create_future()
            self._n_left -= 1
        self.got.append(message)


def answer(body, sending):
    return LongResponse(body, sending, {"ETag": '"a"'}, "application/octet-stream")


async def begin(response, peer):
    """Let an answer be sent as far as the peer reads it."""
    task = asyncio.create_task(response(SCOPE, peer.receive, peer.send))
    for _ in range(5):
        await asyncio.sleep(0)
    return task


@pytest.mark.parametrize("n", [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 200_001])
def test_an_answer_is_whole_and_comes_in_pieces(n):
    """Of any length, with its length in the head; afterwards nothing is counted."""
    sending, body = Sending(), bytes(k % 251 for k in range(n))

    async def work():
        peer = Deaf(100)
        await (await begin(answer(body, sending), peer))
        return peer.got

    start, *pieces = asyncio.run(work())
    assert dict(start["headers"])[b"content-length"] == str(n).encode()
    assert b"".join(one["body"] for one in pieces) == body
    assert max(len(one["body"]) for one in pieces) <= PIECE_BYTES
    assert [one["more_body"] for one in pieces] == [True] * (len(pieces) - 1) + [False]
    assert sending.n_bytes == 0


def test_unread_answers_are_bounded_together():
    """One beyond the bound is refused with 503; when a peer goes, there is room again."""
    sending = Sending(3 * PIECE_BYTES)
    body = bytes(2 * PIECE_BYTES)

    async def work():
        first, second, third = Deaf(), Deaf(9), Deaf(9)
        task = await begin(answer(body, sending), first)
        assert [one["type"] for one in first.got] == ["http.response.start"]
        assert sending.n_bytes == len(body)
        await (await begin(answer(body, sending), second))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await (await begin(answer(body, sending), third))
        return second.got, third.got

    refused, taken = asyncio.run(work())
    assert refused[0]["status"] == 503
    assert b"too many answers wait to be read" in refused[1]["body"]
    assert taken[0]["status"] == 200
    assert sending.n_bytes == 0
