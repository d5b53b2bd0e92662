// Print the highest bin of every spectrum, and what was missed on the way.
//
//   npm ci --ignore-scripts        (once; the package brings ZeroMQ ready-made)
//   node subscribe.mjs [ENDPOINT [PREFIX]] [--json] [--count N] [--key ME.key --server-key BOX.pub]
//   node subscribe.mjs --check ../tests/data/golden_v1.json
//
// Needs Node.js 18 or later and the package zeromq; it follows docs/protocol.md. The daemon may
// start later, end and come back.

import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

const SILENCE_MS = 3000; // a daemon says something each second

/** Read a header. Times in ns exceed 2^53, which a Number would round to 256 ns: they are BigInt. */
function parseHeader(text) {
  const quoted = text.replace(/((?<!\\)"t_(?:utc|mono)_ns"\s*:\s*)(-?\d+)/g, '$1"$2"');
  const header = JSON.parse(quoted);
  for (const name of ["t_utc_ns", "t_mono_ns"]) {
    if (name in header) header[name] = BigInt(header[name]);
  }
  return header;
}

/** Read little-endian numbers, on any machine and wherever in memory they lie. */
function parseValues(part, dtype) {
  const sizes = { "<f4": 4, "<f8": 8 };
  const size = sizes[dtype];
  if (size === undefined) throw new Error(`dtype=${dtype}: must be <f4 or <f8`);
  if (part.length % size !== 0) throw new Error(`payload of ${part.length} bytes: not of ${dtype}`);
  const view = new DataView(part.buffer, part.byteOffset, part.byteLength);
  return Array.from({ length: part.length / size }, (_, k) =>
    size === 4 ? view.getFloat32(4 * k, true) : view.getFloat64(8 * k, true),
  );
}

/** Read a message; throws an Error that says which rule it breaks. */
function decode(parts) {
  if (parts.length < 2) throw new Error(`message of ${parts.length} parts: must have two or more`);
  const topic = parts[0].toString("latin1");
  const header = parseHeader(parts[1].toString("utf8"));
  if (header.v !== 1) throw new Error(`${topic}: v=${header.v}: this program reads version 1`);
  if (!Number.isInteger(header.seq) || !Number.isInteger(header.epoch)) {
    throw new Error(`${topic}: seq=${header.seq}: it and epoch must be integers`);
  }
  if (!("shape" in header)) return { topic, header, values: null };
  if (parts.length < 3) throw new Error(`${topic}: the payload is missing`);
  const values = parseValues(parts[2], header.dtype);
  if (header.shape.length !== 1 || header.shape[0] !== values.length) {
    throw new Error(`${topic}: shape=[${header.shape}]: ${values.length} values came`);
  }
  if (topic.startsWith("spec/")) {
    const expected = header.first_bin ? header.nfft : Math.floor(header.nfft / 2) + 1;
    if (values.length !== expected) {
      throw new Error(`${topic}: ${values.length} values: must be ${expected}`);
    }
  }
  return { topic, header, values };
}

const last = new Map(); // topic -> its newest epoch and seq

/** Add how many messages of the topic are missing directly before this one. */
function compare(message) {
  const { epoch, seq } = message.header;
  // The first message of a topic may have any seq: a late subscriber has missed nothing.
  const before = last.get(message.topic) ?? { epoch, seq: seq - 1 };
  last.set(message.topic, { epoch, seq });
  const restarted = epoch !== before.epoch;
  return { ...message, missed: restarted ? 0 : Math.max(0, seq - before.seq - 1), restarted };
}

/** Write a message as one line of JSON; BigInt as digits, what is not finite as null. */
function asJson(message) {
  const text = JSON.stringify(message, (_, value) =>
    typeof value === "bigint" ? `${value}n` : value,
  );
  return text.replace(/("t_(?:utc|mono)_ns":)"(-?\d+)n"/g, "$1$2");
}

/** Print what a person wants to know of a message. */
function show({ topic, header, values, missed, restarted }) {
  if (restarted) console.error(`${topic} the daemon was restarted`);
  if (missed) console.error(`${topic} ${missed} missed before seq ${header.seq}`);
  if (values === null || !topic.startsWith("spec/")) return;
  if (header.gap_samples) console.error(`${topic} gap of ${header.gap_samples} samples`);
  const k = values.reduce((best, value, at) => (value > values[best] ? at : best), 0);
  const offset = (((header.first_bin ?? 0) + k) * header.fs) / header.nfft;
  const hertz = (header.center_frequency_hz ?? 0) + offset;
  console.log(`${topic} ${hertz.toFixed(1)} Hz ${values[k].toFixed(2)} ${header.unit}`);
}

/** Decode the messages of a file of golden ones and print each as a line of JSON. */
function check(path) {
  for (const golden of JSON.parse(readFileSync(path, "utf8"))) {
    const parts = [Buffer.from(golden.topic), Buffer.from(golden.header)];
    if (golden.payload_hex !== null) parts.push(Buffer.from(golden.payload_hex, "hex"));
    console.log(asJson(decode(parts)));
  }
}

/** Take a key out of a file of `spectrod keys new`. */
function readKey(path, name) {
  const line = readFileSync(path, "utf8").match(new RegExp(`^${name} = "([^"]{40})"$`, "m"));
  if (line === null) throw new Error(`${path}: has no ${name}`);
  return line[1];
}

async function main() {
  const { values: options, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      json: { type: "boolean", default: false },
      count: { type: "string", default: "0" },
      key: { type: "string" },
      "server-key": { type: "string" },
      check: { type: "string" },
    },
  });
  if (options.check !== undefined) return check(options.check);
  const { Subscriber } = await import("zeromq");
  const [endpoint = "tcp://127.0.0.1:5556", prefix = "spec/"] = positionals;
  const socket = new Subscriber({
    linger: 0,
    ipv6: endpoint.includes("["),
    receiveTimeout: SILENCE_MS,
    // ZeroMQ connects again by itself, as often as it takes; and notices a cable that was pulled.
    reconnectInterval: 100,
    tcpKeepalive: 1,
    tcpKeepaliveIdle: 2,
    tcpKeepaliveInterval: 2,
    tcpKeepaliveCount: 2,
  });
  if (options.key !== undefined && options["server-key"] !== undefined) {
    socket.curvePublicKey = readKey(options.key, "public_key");
    socket.curveSecretKey = readKey(options.key, "secret_key");
    socket.curveServerKey = readKey(options["server-key"], "public_key");
  }
  // hb/ beats each second: silence is then not mistaken for death. meta/ says what values mean.
  socket.subscribe(prefix, "hb/", ...(options.json ? ["meta/"] : []));
  socket.connect(endpoint);

  for (let spectra = 0; ; ) {
    let parts, message;
    try {
      parts = await socket.receive();
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
      console.error(`nothing from ${endpoint} for ${SILENCE_MS / 1000} s`);
      continue;
    }
    try {
      message = compare(decode(parts));
    } catch (error) {
      console.error(`left out: ${error.message}`);
      continue;
    }
    if (options.json) console.log(asJson(message));
    else show(message);
    if (message.topic.startsWith(prefix)) spectra += 1;
    if (spectra === Number(options.count) && spectra !== 0) break;
  }
  socket.close();
}

process.stdout.on("error", (error) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(1); // the reader of the output is gone, as with `| head`
});
await main();
