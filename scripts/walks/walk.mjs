// Runs the walks in a separate process: gets the modules of an instrumented dist/, sends the entries of each walk.
import { once } from "node:events";
import { Agent, request } from "node:http";
import { pathToFileURL } from "node:url";
import { GetQueueUrlCommand, ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { context, httpEvent, queueEvent } from "./events.mjs";
import { sampleServer } from "./sample.mjs";

let entries;
let isTimer = false;
globalThis.entered = (id) => {
  if (!isTimer) entries?.push(id);
};
// Functions that a timer calls are not part of a walk.
for (const name of ["setTimeout", "setInterval"]) {
  const start = globalThis[name];
  globalThis[name] = (callback, ...others) =>
    start(
      (...given) => {
        isTimer = true;
        try {
          callback(...given);
        } finally {
          isTimer = false;
        }
      },
      ...others,
    );
}
// Clocks stop while a walk is recorded, so that its duration does not change its way.
let areStopped = false;
for (const clock of [Date, performance]) {
  const now = clock.now.bind(clock);
  let last = now();
  clock.now = () => {
    if (!areStopped) last = now();
    return last;
  };
}

const [{ modules, token }] = await once(process, "message");
const load = (name) => import(pathToFileURL(modules[name]).href);
const [keelson, lambda, { runContainer }] = await Promise.all([
  load("."),
  load("./lambda"),
  load("./container"),
]);
const headers = { accept: "application/json", authorization: `Bearer ${token}` };
const limit = "/config/sample:config:limit";

const recorded = [];
await makeTables();
await walkLambda();
await walkContainer();
await walkMessage();
await walkSignal();
process.send(recorded, () => process.exit());

/** Repeats a walk until it is warm, then records it. `prepare` runs before each. */
async function walk(name, go, { prepare = async () => undefined, warmUps = 5 } = {}) {
  for (let time = 0; time < warmUps; time += 1) await go(await prepare());
  const given = await prepare();
  await quiet();
  await record(name, () => go(given));
}

/** Runs a walk once, and records its entries. */
async function record(name, go) {
  for (const clock of [Date, performance]) clock.now();
  areStopped = true;
  entries = [];
  const answer = await go();
  recorded.push({ name, entries });
  entries = undefined;
  areStopped = false;
  return answer;
}

/** Waits until work that is not awaited has ended, and the timers of half a second that invocations leave. */
async function quiet() {
  await new Promise((resolve) => setTimeout(resolve, 600));
}

/** Starts a container on a free port. */
function start(options = {}) {
  return runContainer(sampleServer(keelson, options), { port: 0, host: "127.0.0.1" });
}

/** A deployment creates the resources of a function; a container creates them on an emulator. */
async function makeTables() {
  await (await start({ withMessages: true })).close();
}

/** Events of an HTTP API. */
async function walkLambda() {
  const server = sampleServer(keelson, { read: (run) => reading(run) });
  let reading = (run) => run();
  const send = sender(lambda.lambdaHttp(server));
  let n = 0;
  await walk("lambda get", () => send("GET", "/hello"));
  const change = () => send("PUT", limit, { body: { value: ++n, scope: "tenant" } });
  await change();
  const show = () => send("GET", "/limit");
  for (let time = 0; time < 5; time += 1) await show();
  reading = async (run) => {
    // The caller is already waiting for the handler, so no other function is entered in the meantime.
    await new Promise((resolve) => setImmediate(resolve));
    return record("config read", run);
  };
  await show();
  await walk("put config", change);
  const note = (key) =>
    send("POST", "/notes", { headers: { "idempotency-key": key }, body: { id: key } });
  await walk("claimed write", note, { prepare: async () => `key-${++n}` });
  await walk("repeat", note, { prepare: async () => `key-${n}` });
}

/** Sends requests to a function, as an HTTP API does. */
function sender(handler) {
  return async (method, path, { body, headers: more } = {}) => {
    const event = httpEvent(method, path, { body, headers: { ...headers, ...more } });
    const { statusCode, body: answer } = await handler(event, context);
    if (statusCode !== 200)
      throw new Error(`${method} ${path} was answered with ${statusCode}: ${answer}`);
  };
}

/** A request over a connection that stays open. */
async function walkContainer() {
  const container = await start();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  await walk("container get", () => fetchFrom({ agent, port: container.port, path: "/hello" }));
  agent.destroy();
  await container.close();
}

function fetchFrom({ body, ...target }) {
  return new Promise((resolve, reject) => {
    const more = body === undefined ? {} : { "content-type": "application/json" };
    const asked = { ...target, host: "127.0.0.1", headers: { ...headers, ...more } };
    const sent = request(asked, (response) => {
      response.resume().on("end", () => {
        if (response.statusCode === 200) resolve();
        else reject(new Error(`the container answered with ${response.statusCode}`));
      });
    });
    sent.on("error", reject).end(body);
  });
}

/** An event from its queue, in a batch of one. */
async function walkMessage() {
  const server = sampleServer(keelson, { withMessages: true });
  const send = sender(lambda.lambdaHttp(server));
  const queue = lambda.lambdaQueue(server);
  const sqs = new SQSClient({});
  const { QueueUrl } = await sqs.send(new GetQueueUrlCommand({ QueueName: "keelson-events" }));
  const asked = {
    QueueUrl,
    WaitTimeSeconds: 1,
    MaxNumberOfMessages: 1,
    MessageSystemAttributeNames: ["All"],
  };
  const receive = async () => {
    for (;;) {
      const { Messages: [message] = [] } = await sqs.send(new ReceiveMessageCommand(asked));
      if (message !== undefined) return message;
    }
  };
  let n = 0;
  const consume = async (event) => {
    const { batchItemFailures } = await queue(event, context);
    if (batchItemFailures.length > 0) throw new Error("the message was not processed");
  };
  const prepare = async () => {
    await send("POST", "/notes", { body: { id: `event-${++n}` } });
    return queueEvent(await receive());
  };
  await walk("message", consume, { prepare });
  sqs.destroy();
}

/** Stops a container that has answered a write and consumed its event, and whose queues are empty. */
async function walkSignal() {
  const { exit } = process;
  let n = 0;
  const drain = async () => {
    const ended = new Promise((resolve) => {
      process.exit = resolve;
    });
    process.emit("SIGTERM", "SIGTERM");
    const code = await ended;
    if (code !== 0) throw new Error(`the drain ended with ${code}`);
  };
  const prepare = async () => {
    // Listeners of the previous container, which has not ended its process.
    for (const name of ["SIGTERM", "SIGINT", "uncaughtException", "unhandledRejection"])
      process.removeAllListeners(name);
    await new Promise((counted, failed) => {
      start({ withMessages: true, counted })
        .then(({ port }) =>
          fetchFrom({
            port,
            method: "POST",
            path: "/notes",
            body: JSON.stringify({ id: `signal-${++n}` }),
          }),
        )
        .catch(failed);
    });
  };
  await walk("sigterm", drain, { prepare, warmUps: 1 }); // each waits for the last poll of the queues
  process.exit = exit;
}
