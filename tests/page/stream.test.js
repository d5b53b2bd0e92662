// The page's connection, with sockets, timers and requests of the test's own.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Connection, reconnectDelay, streamAddress } from "../../spectrod/apps/web/page/link/stream.js";
import { Clock } from "./clock.js";

const HELLO = JSON.stringify({ op: "hello", version: 1 });

class Socket {
  sent = [];
  closed = null;
  constructor(address) {
    this.address = address;
  }
  send(text) {
    this.sent.push(JSON.parse(text));
  }
  close(code, reason) {
    this.closed = { code, reason };
  }
  say(data) {
    this.onmessage({ data });
  }
  ofOp(op) {
    return this.sent.filter((message) => message.op === op);
  }
}

/** A message of rows without blocks. */
function rowsMessage(number) {
  const view = new DataView(new ArrayBuffer(8));
  view.setUint8(0, 1);
  view.setUint8(1, 1);
  view.setUint32(4, number, true);
  return view.buffer;
}

function setUp({ hello = async () => ({ ok: true, json: async () => ({}) }) } = {}) {
  const clock = new Clock();
  const sockets = [];
  const heard = { texts: [], rows: [], phases: [] };
  const connection = new Connection({
    base: "http://here/at/",
    clock,
    random: () => 0.5,
    fetch: hello,
    open: (address) => {
      sockets.push(new Socket(address));
      return sockets.at(-1);
    },
    handlers: {
      text: (message) => heard.texts.push(message),
      rows: (blocks) => heard.rows.push(blocks),
      phase: (phase) => heard.phases.push(phase),
    },
  });
  return { clock, sockets, heard, connection };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("the wait grows by 1.6 from 0.5 s to 15 s, spread by 30 % either way", () => {
  assert.equal(reconnectDelay(0, 0.5), 500);
  assert.equal(reconnectDelay(1, 0.5), 800);
  assert.equal(reconnectDelay(100, 0.5), 15000);
  assert.equal(reconnectDelay(100, 0), 10500);
  assert.ok(Math.abs(reconnectDelay(0, 1) - 650) < 1e-9);
});

test("the address keeps the path of a proxy and the page's security", () => {
  assert.equal(streamAddress("http://a:1/x/y/#f"), "ws://a:1/x/y/api/stream");
  assert.equal(streamAddress("https://a/index.html"), "wss://a/api/stream");
});

test("nothing is sent before the server's hello, and the newest view after it", () => {
  const { clock, sockets, connection } = setUp();
  connection.start();
  connection.setView({ visible: true, streams: [1] });
  connection.setView({ visible: true, streams: [2] });
  clock.advance(1000);
  assert.deepEqual(sockets[0].sent, []);
  sockets[0].say(HELLO);
  clock.advance(0);
  assert.deepEqual(sockets[0].sent, [{ op: "view", generation: 1, visible: true, streams: [2] }]);
});

test("a thousand views in a second are sent at most eleven times, the last one last, with growing numbers", () => {
  const { clock, sockets, connection } = setUp();
  connection.start();
  sockets[0].say(HELLO);
  for (let k = 0; k < 1000; k++) {
    connection.setView({ visible: true, streams: [k] });
    clock.advance(1);
  }
  clock.advance(200);
  const views = sockets[0].ofOp("view");
  assert.ok(views.length <= 12, `${views.length} views`);
  assert.deepEqual(views.at(-1).streams, [999]);
  views.forEach((view, k) => assert.equal(view.generation, k + 1));
});

test("the same view is sent once, and again after another one", () => {
  const { clock, sockets, connection } = setUp();
  connection.start();
  sockets[0].say(HELLO);
  for (const stream of [1, 1, 1, 2, 2, 1]) {
    connection.setView({ visible: true, streams: [stream] });
    clock.advance(200);
  }
  assert.deepEqual(sockets[0].ofOp("view").map(({ streams }) => streams[0]), [1, 2, 1]);
});

test("a message is acknowledged once, when it was drawn", () => {
  const { sockets, heard, connection } = setUp();
  connection.start();
  sockets[0].say(HELLO);
  connection.drew();
  sockets[0].say(rowsMessage(7));
  sockets[0].say(rowsMessage(8));
  assert.deepEqual(sockets[0].ofOp("ack"), []);
  connection.drew();
  connection.drew();
  assert.deepEqual(sockets[0].ofOp("ack"), [{ op: "ack", message: 8 }]);
  assert.equal(heard.rows.length, 2);
});

test("a lost connection comes back with the same view and starts its acknowledgements again", async () => {
  const { clock, sockets, heard, connection } = setUp();
  connection.start();
  sockets[0].say(HELLO);
  connection.setView({ visible: true, streams: [5] });
  sockets[0].say(rowsMessage(9));
  connection.drew();
  sockets[0].onclose({ code: 1006, reason: "" });
  await settled();
  assert.equal(heard.phases.at(-1).why, "the connection was lost");
  clock.advance(500);
  assert.equal(sockets.length, 2);
  sockets[1].say(HELLO);
  clock.advance(0);
  connection.drew();
  assert.deepEqual(sockets[1].sent.map(({ op }) => op), ["view"]);
  sockets[1].say(rowsMessage(9));
  connection.drew();
  assert.equal(sockets[1].ofOp("ack").length, 1);
});

test("a server that closes at once is tried at growing intervals; one that lasted, soon", async () => {
  const { clock, sockets, heard, connection } = setUp();
  connection.start();
  const waits = [];
  for (const lasts of [0, 0, 0, 6000]) {
    sockets.at(-1).say(HELLO);
    clock.advance(lasts);
    sockets.at(-1).onclose({ code: 1001, reason: "" });
    await settled();
    waits.push(Math.round(heard.phases.at(-1).wait_ms));
    clock.advance(heard.phases.at(-1).wait_ms);
  }
  assert.deepEqual(waits, [500, 800, 1280, 500]);
});

test("a refused connection asks why over HTTP and says whether a token is needed", async () => {
  const asked = [];
  const hello = async (address) => {
    asked.push(address);
    return { ok: true, json: async () => ({ refused: "32 clients are connected", needs_token: true }) };
  };
  const { sockets, heard, connection } = setUp({ hello });
  connection.start();
  sockets[0].onclose({ code: 1006, reason: "" });
  await settled();
  assert.deepEqual(asked, ["http://here/at/api/hello"]);
  const { phase, why, needsToken } = heard.phases.at(-1);
  assert.deepEqual([phase, why, needsToken], ["waiting", "32 clients are connected", true]);
});

test("a server that does not answer is waited for", async () => {
  const hello = async () => {
    throw new TypeError("failed to fetch");
  };
  const { clock, sockets, heard, connection } = setUp({ hello });
  connection.start();
  sockets[0].onclose({ code: 1006, reason: "" });
  await settled();
  assert.equal(heard.phases.at(-1).why, "the server does not answer");
  clock.advance(500);
  assert.equal(sockets.length, 2);
});

for (const [name, data, why] of [
  ["no JSON", "{", /malformed message: .*JSON/],
  ["a text without op", "[1]", /malformed message: a text without op/],
  ["null", "null", /malformed message: a text without op/],
  ["another version", '{"op":"hello","version":2}', /malformed message: version=2: this page reads version 1; reload it/],
  ["a short binary message", new ArrayBuffer(3), /malformed message: message of 3 bytes ends within its header/],
]) {
  test(`${name} closes the connection with its reason, and it is tried again`, () => {
    const { clock, sockets, heard, connection } = setUp();
    connection.start();
    sockets[0].say(data);
    assert.equal(sockets[0].closed.code, 4002);
    assert.match(heard.phases.at(-1).why, why);
    clock.advance(500);
    assert.equal(sockets.length, 2);
  });
}

test("after stop nothing of the old socket is heard and no other is opened", async () => {
  const { clock, sockets, heard, connection } = setUp();
  connection.start();
  sockets[0].say(HELLO);
  connection.stop();
  assert.equal(sockets[0].closed.code, 1000);
  sockets[0].say('{"op":"state"}');
  sockets[0].onclose({ code: 1000, reason: "" });
  await settled();
  clock.advance(60000);
  assert.equal(sockets.length, 1);
  assert.deepEqual(heard.texts.map(({ op }) => op), ["hello"]);
  assert.equal(heard.phases.at(-1).phase, "stopped");
  connection.start();
  assert.equal(sockets.length, 2);
});

test("stop while it asks why it was refused lets it rest", async () => {
  let answer;
  const { clock, sockets, connection } = setUp({ hello: () => new Promise((resolve) => (answer = resolve)) });
  connection.start();
  sockets[0].onclose({ code: 1006, reason: "" });
  connection.stop();
  answer({ ok: true, json: async () => ({}) });
  await settled();
  clock.advance(60000);
  assert.equal(sockets.length, 1);
});
