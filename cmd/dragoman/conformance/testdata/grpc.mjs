// Calls a gRPC server with @grpc/grpc-js, without generated code, and prints what came of each call
// as JSON: the status and what the answer says.
import grpc from "@grpc/grpc-js";
import http2 from "node:http2";

const address = process.argv[2];
const client = new grpc.Client(address, grpc.credentials.createInsecure());
const zipping = new grpc.Client(address, grpc.credentials.createInsecure(), { "grpc.default_compression_algorithm": 2 });
const raw = (b) => b;
const name = (code) => grpc.status[code];

// text returns a message of protobuf whose field has the text.
function text(field, value) {
  const b = Buffer.from(value);
  const length = [];
  for (let n = b.length; ; n >>= 7) {
    if (n < 128) {
      length.push(n);
      break;
    }
    length.push((n & 127) | 128);
  }
  return Buffer.concat([Buffer.from([(field << 3) | 2, ...length]), b]);
}

// call makes a call with one request and one answer.
function call(path, request, { metadata = {}, options = {}, via = client, cancel = false } = {}) {
  const m = new grpc.Metadata();
  for (const [key, value] of Object.entries(metadata)) m.set(key, value);
  return new Promise((resolve) => {
    const c = via.makeUnaryRequest(path, raw, raw, request, m, options, (err, answer) => {
      resolve(err ? name(err.code) : "OK " + answer.toString("hex").slice(0, 8));
    });
    if (cancel) c.cancel();
  });
}

// stream opens a stream, sends a request, and calls on with each answer until it ends.
function stream(path, request, on, options = {}) {
  return new Promise((resolve) => {
    const s = client.makeBidiStreamRequest(path, raw, raw, new grpc.Metadata(), options);
    let said = "";
    s.on("data", (answer) => {
      said += on(answer, s) + " ";
    });
    s.on("error", () => {}); // the status says it
    s.on("status", (status) => resolve(said + name(status.code)));
    s.write(request);
    if (path.includes("Watch")) s.end();
  });
}

// plain makes a request of HTTP/2 that is not quite gRPC.
function plain(headers, body = Buffer.from([0, 0, 0, 0, 0])) {
  return new Promise((resolve) => {
    const session = http2.connect("http://" + address);
    const s = session.request({ ":method": "POST", ":path": check, "content-type": "application/grpc", te: "trailers", ...headers });
    let status, code;
    s.on("response", (h) => {
      status = h[":status"];
      code = h["grpc-status"];
    });
    s.on("trailers", (h) => {
      code = h["grpc-status"] ?? code;
    });
    s.on("error", () => {});
    s.on("close", () => {
      session.close();
      resolve(`${status} ${name(code) ?? code}`);
    });
    s.resume();
    s.end(body);
  });
}

const check = "/grpc.health.v1.Health/Check";
const watch = "/grpc.health.v1.Health/Watch";
const empty = Buffer.alloc(0);
const soon = () => ({ deadline: Date.now() + 300 });
const health = (b) => (b.length > 1 ? "state " + b[1] : "state 0");
const services = (b, s) => {
  s.end();
  return ["grpc.health.v1.Health", "coven.CovenControl", "parallax.gateway.AgentGateway"].filter((n) => b.includes(n)).length + " services";
};

// Node refuses to send a header of 64 KiB, but each counts 32 bytes beyond its own.
const many = Object.fromEntries(Array.from({ length: 1200 }, (_, i) => ["x-" + i, "x".repeat(20)]));

const results = {
  "the health of the hub": await call(check, empty),
  "the health of a service": await call(check, text(1, "coven.CovenControl")),
  "the health of a service that is not there": await call(check, text(1, "no.such.Service")),
  "a request of health over its limit": await call(check, text(1, "x".repeat(300))),
  "watching, until the client cancels": await stream(watch, empty, (b, s) => {
    s.cancel();
    return health(b);
  }),
  "watching, until the deadline": await stream(watch, empty, health, soon()),
  "a deadline that has passed": await call(check, empty, { options: { deadline: Date.now() - 1 } }),
  "a call that is cancelled at once": await call(check, empty, { cancel: true }),
  "reflection": await stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", text(7, ""), services),
  "reflection of an older version": await stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", text(7, ""), services),
  "an unknown service": await call("/no.such.Service/Call", empty),
  "an unknown method": await call("/grpc.health.v1.Health/Call", empty),
  "an unknown method of a stream": await stream("/coven.CovenControl/Call", empty, () => "answer"),
  "a path without a method": await call("/nothing", empty),
  "a list": await call("/coven.ClientService/ListAgents", empty),
  "a request that is no protobuf": await call("/coven.ClientService/ListAgents", Buffer.from([0xff, 0xff])),
  "a message over the limit": await call("/coven.ClientService/SendMessage", text(1, "x".repeat(5 << 20))),
  "a call after that": await call(check, empty),
  "a compressed message": await call(check, text(1, "coven.CovenControl"), { via: zipping }),
  "metadata of text and bytes": await call(check, empty, { metadata: { "x-text": "a b c", "x-bytes-bin": Buffer.from([0, 255]) } }),
  "metadata over the limit": await call(check, empty, { metadata: many }),
  "300 calls at once": [...new Set(await Promise.all(Array.from({ length: 300 }, () => call(check, empty))))].join(" and "),
  "another content type": await plain({ "content-type": "application/json" }),
  "no content type": await plain({ "content-type": "" }),
  "a content type with a codec": await plain({ "content-type": "application/grpc+proto" }),
  "a GET": await plain({ ":method": "GET" }, undefined),
  "a timeout of a second": await plain({ "grpc-timeout": "1S" }),
  "a timeout without a unit": await plain({ "grpc-timeout": "1" }),
  "an unknown compression": await plain({ "grpc-encoding": "none-such" }, Buffer.from([1, 0, 0, 0, 1, 0])),
  "a message that is cut": await plain({}, Buffer.from([0, 0, 0, 0, 9, 1])),
  "no message": await plain({}, empty),
  "two messages": await plain({}, Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
};
client.close();
zipping.close();
console.log(JSON.stringify(results));
