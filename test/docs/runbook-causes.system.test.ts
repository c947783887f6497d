// Causes each symptom of the runbook that can be caused on one machine, and applies the queries of its page to the lines that
// were logged: they name the tenant, the request, the message or the key. Where the page has a command, it is the fix.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { happens, server } from "../fixtures/runbook-server.ts";
import { type Row, resultsOf } from "../support/logs-insights/results.ts";
import { startProcess } from "../support/process.ts";
import { ranCommand } from "../support/ran-command.ts";
import { idsOf, properties, sheds, templateOf } from "../support/server-templates.ts";
import { queriesOf, runbookPages } from "./runbook-pages.ts";

/** Queries whose lines are not caused here, by page and number, and why. */
const notCaused: Readonly<Record<string, string>> = {
  "function-errors 0": "Lambda's own runtime writes these lines",
};

/** Queries of API Gateway's access log, whose log group contains no lines of browsers. */
const ofAccessLog = new Set(["flooding-tenant 3", "throttling 1"]);

const module = "test/fixtures/runbook-server.ts";
const ann = { id: "ann", tenantId: "acme", roles: ["admin"] };
const eve = { id: "eve", tenantId: "umbrella", roles: ["admin"] };
const root = { id: "root", tenantId: "ops", roles: ["systemAdmin"] };
const leaseMs = 33_000;

let app: TestApp;
let since = 0;
beforeAll(async () => {
  app = await startTestApp(server);
});
afterAll(() => app.close());
beforeEach(() => {
  since = app.logs.length;
});
afterEach(() => {
  Object.assign(happens, {
    ...{ mail: nothing, charge: nothing, ship: nothing, report: nothing, isReady: true },
  });
});

const nothing = () => undefined;
const breaks = (message: string) => () => {
  throw new Error(message);
};
const applied = new Set<string>();

/** Rows of the n-th query of a page, from the lines of this test or those given, with values for its placeholders. */
function rowsOf(
  page: string,
  nth: number,
  values: Readonly<Record<string, unknown>> = {},
  lines: readonly object[] = app.logs.slice(since),
): readonly Row[] {
  const found = runbookPages.find(({ name }) => name === page);
  const query = found && queriesOf(found)[nth]?.code;
  if (query === undefined) throw new Error(`${page} has no query ${nth}`);
  applied.add(`${page} ${nth}`);
  const filled = Object.entries(values).reduce(
    (text, [name, value]) => text.replaceAll(name, String(value)),
    query,
  );
  return resultsOf(filled, lines);
}

const send = (
  path: string,
  as: typeof ann,
  { id, key, ...options }: { method?: string; body?: object; id?: string; key?: string } = {},
) =>
  app.fetch(path, {
    as,
    ...options,
    headers: {
      ...(id !== undefined && { "x-request-id": id }),
      ...(key !== undefined && { "idempotency-key": key }),
    },
  });
const place = (id: string, as = ann) => send("/orders", as, { body: { id }, id: `place-${id}` });

/** A line that API Gateway writes by the format of a template, with values for its variables. */
function accessLine(format: string, values: Readonly<Record<string, string>>): object {
  return Object.fromEntries(
    [...format.matchAll(/\\"(\w+)\\":\\"\$context\.([\w.]+)\\"/g)].map(
      ([, field = "", variable = ""]) => [field, values[variable] ?? "-"],
    ),
  );
}

/** Runs a command of the page, with text on standard input. */
async function run(command: string, input?: string) {
  const { code, out, err } = await ranCommand(command.split(" "), {
    env: app.env,
    clock: app.clock,
    wait: async () => undefined,
    ...(input !== undefined && { input: () => Readable.from([input]) }),
  });
  expect(code, err).toBe(0);
  return `${out.join("\n")}${err}`;
}

describe("a failing dependency", () => {
  test("server-errors: the handler, the tenant and the request", async () => {
    app.faults.before("GetItem", 2).fail("AccessDeniedException");
    expect((await send("/orders/1", ann, { id: "show-1" })).status).toBe(500);

    expect(rowsOf("server-errors", 0)).toEqual([
      { handler: "shop.order.show", error: "internal_error", failures: 1 },
    ]);
    expect(rowsOf("server-errors", 1)).toMatchObject([
      { requestId: "show-1", tenantId: "acme", handler: "shop.order.show" },
    ]);
    since = app.logs.length;
    expect((await send("/orders/1", ann)).status).toBe(200);
    expect(rowsOf("server-errors", 0)).toEqual([]);
  });

  test("throttling: the handler and the tenant", async () => {
    app.faults.before("GetItem", 1).fail("ThrottlingException");
    expect((await send("/orders/1", ann)).status).toBe(500);

    expect(rowsOf("throttling", 0)).toContainEqual({
      msg: "request.failed",
      handler: "shop.order.show",
      tenantId: "acme",
      refused: 1,
    });
  });

  test("configuration-unavailable: the key that is stale, and the request that failed", async () => {
    expect((await send("/most", ann)).status).toBe(200);
    app.clock.advance(31_000);
    app.faults.before("BatchGetItem", 1).fail("ThrottlingException");
    expect((await send("/most", ann)).status).toBe(200);
    app.faults.before("BatchGetItem", 1).fail("ThrottlingException");
    expect((await send("/most", eve, { id: "most-eve" })).status).toBe(503);

    const rows = rowsOf("configuration-unavailable", 0);
    expect(rows).toContainEqual(
      expect.objectContaining({ msg: "config.stale", key: "shop:config:most-orders" }),
    );
    expect(rows).toContainEqual(
      expect.objectContaining({
        error: "config_unavailable",
        requestId: "most-eve",
        tenantId: "umbrella",
      }),
    );
    expect(rowsOf("configuration-unavailable", 1)).toEqual([
      { tenantId: "umbrella", handler: "shop.order.most", failures: 1 },
    ]);
  });

  test("unknown-commit: the request, whose retry is shown to succeed", async () => {
    for (let n = 1; n <= 3; n++) {
      app.faults.before("TransactWriteItems", n).fail("InternalServerError");
      app.faults.before("GetItem", n).fail("InternalServerError");
    }
    const pay = () => send("/orders", ann, { body: { id: "9" }, id: "commit-9", key: "commit-9" });
    expect((await pay()).status).toBe(500);

    expect(rowsOf("unknown-commit", 0)).toMatchObject([
      { msg: "once.commit_uncertain", requestId: "commit-9", tenantId: "acme" },
    ]);
    app.clock.advance(leaseMs);
    expect((await pay()).status).toBe(200);
    await app.settled();
    expect(rowsOf("unknown-commit", 1, { REQUEST_ID: "commit-9" })).toMatchObject([
      { status: 200, tenantId: "acme" },
      { status: 500 },
    ]);
  });

  test("unknown-commit: the request whose end could not be recorded", async () => {
    for (const nth of [2, 3]) app.faults.before("PutItem", nth).fail("InternalServerError");
    await send("/orders/8", ann, { method: "DELETE", id: "end-8", key: "end-8" });

    expect(rowsOf("unknown-commit", 0)).toMatchObject([
      { msg: "once.completion_failed", requestId: "end-8", tenantId: "acme" },
    ]);
  });

  test("not-ready: the check, until it has recovered", async () => {
    happens.isReady = false;
    expect((await app.fetch("/health/ready")).status).toBe(503);
    expect(rowsOf("not-ready", 0)).toMatchObject([{ check: "search" }]);

    happens.isReady = true;
    app.clock.advance(2_000); // checks are cached for a second
    expect((await app.fetch("/health/ready")).status).toBe(200);
    expect(app.logs.slice(since)).toContainEqual(
      expect.objectContaining({ msg: "health.check_recovered", check: "search" }),
    );
  });
});

describe("messages", () => {
  test("late-events: the reason and the event, and then that a sweep has sent it", async () => {
    app.faults.before("PutEvents", 1).fail("InternalException");
    expect((await place("2")).status).toBe(200);
    const waiting = () => rowsOf("late-events", 0);
    await expect.poll(waiting).toMatchObject([
      {
        msg: "event.dispatch_failed",
        reason: expect.stringContaining("InternalException"),
        "events.0": expect.stringMatching(/^order\.placed [\w-]+$/),
      },
    ]);
    app.clock.advance(90_000);
    await app.settled();
    expect(waiting()).toHaveLength(1);
    expect(rowsOf("late-events", 2)).toContainEqual(
      expect.objectContaining({ msg: "outbox.swept", dispatched: 1, left: 0 }),
    );
    expect(rowsOf("late-events", 1)).toMatchObject([{ handler: "shop.order.mail", runs: 1 }]);
  });

  test("dead-letters: the message, its tenant and its error; moved back, it is processed", async () => {
    happens.mail = breaks("the printer is out of paper");
    await place("3", eve);
    await expect(app.settled()).rejects.toThrow("order.placed");

    const [letter, ...others] = rowsOf("dead-letters", 0);
    expect([letter, others]).toMatchObject([
      {
        tenantId: "umbrella",
        event: "order.placed",
        reason: expect.stringContaining("the printer is out of paper"),
      },
      [],
    ]);
    expect(rowsOf("dead-letters", 1)).toMatchObject([{ event: "order.placed", letters: 1 }]);

    happens.mail = nothing;
    const { queue, eventId } = letter ?? {};
    expect(await run(`queue list ${module}`)).toContain("umbrella");
    await run(`queue move-back ${module} ${queue} ${eventId}`);
    await app.settled();
    expect(rowsOf("dead-letters", 2, { MESSAGE_ID: eventId })[0]).toMatchObject({
      msg: "event.completed",
      outcome: "processed",
    });
    expect(await run(`queue list ${module} ${queue}`)).not.toContain("umbrella");
  });

  test("set-aside: the event and the reason; put back, it is sent", async () => {
    for (let n = 1; n <= 2; n++) app.faults.before("PutEvents", n).fail("ValidationException");
    await place("4");
    app.clock.advance(90_000);
    await expect(app.settled()).rejects.toThrow("set aside");

    const [row] = rowsOf("set-aside", 0);
    expect(row).toMatchObject({
      msg: "event.set_aside",
      type: "order.placed",
      reason: expect.stringContaining("ValidationException"),
    });
    await run(`outbox put-back --event ${row?.["eventId"]}`);
    app.clock.advance(90_000);
    await app.settled();
    expect(app.logs.slice(since)).toContainEqual(
      expect.objectContaining({ msg: "event.completed", eventId: row?.["eventId"] }),
    );
    expect(rowsOf("set-aside", 0)).toHaveLength(1);
  });

  test("schedule-gave-up: the schedule, its time and its error; it runs at its next time", async () => {
    happens.report = breaks("no numbers");
    app.clock.advance(86_400_000);
    await expect(app.settled()).rejects.toThrow("failed too often");

    const rows = rowsOf("schedule-gave-up", 0);
    expect(new Set(rows.map(({ handler }) => handler))).toEqual(new Set(["shop.order.report"]));
    expect(rows.map(({ msg }) => msg)).toContain("schedule.gave_up");
    expect(rows).toContainEqual(expect.objectContaining({ message: "no numbers" }));

    happens.report = nothing;
    app.clock.advance(86_400_000);
    await app.settled();
    expect(rowsOf("schedule-gave-up", 1)).toContainEqual(
      expect.objectContaining({ handler: "shop.order.report", outcome: "processed" }),
    );
  });
});

describe("a step without an outcome", () => {
  const pay = (key: string) => send("/orders/5/payments", ann, { method: "POST", key, id: key });

  test("unknown-outcome: the request and the key; resolved with a result, the retry succeeds", async () => {
    happens.charge = breaks("socket hang up");
    expect((await pay("pay-1")).status).toBe(500);
    expect((await pay("pay-1")).status).toBe(409);

    const [row] = rowsOf("unknown-outcome", 0);
    expect(row).toMatchObject({ requestId: "pay-1", tenantId: "acme", userId: "ann" });
    const [step] = rowsOf("stuck-step", 0);
    expect(row?.["message"]).toContain(step?.["stepKey"]);

    expect(await run(`steps list ${module} --unknown`)).toContain(step?.["stepKey"]);
    await run(`steps resolve ${module} ${step?.["stepKey"]} --result {"id":"ch_1"}`);
    const retried = await pay("pay-1");
    expect([retried.status, await retried.json()]).toEqual([200, { charge: { id: "ch_1" } }]);
  });

  test("stuck-step: the step, its key and the request; resolved as not done, it runs again", async () => {
    happens.charge = breaks("socket hang up");
    await pay("pay-2");
    expect((await pay("pay-2")).status).toBe(409);

    const [step] = rowsOf("stuck-step", 0);
    expect(step).toMatchObject({
      step: "charge",
      handler: "shop.order.pay",
      tenantId: "acme",
      requestId: "pay-2",
    });
    expect(rowsOf("stuck-step", 1)).toEqual([
      { handler: "shop.order.pay", step: "charge", refused: 1 },
    ]);
    happens.charge = () => ({ id: "ch_2" });
    await run(`steps resolve ${module} ${step?.["stepKey"]} --retry`);
    expect((await pay("pay-2")).status).toBe(200);
    expect(await run(`steps list ${module} --unknown`)).not.toContain(step?.["stepKey"]);
  });
});

test("stuck-step: a job is a dead letter, which is moved back once the step is resolved", async () => {
  happens.ship = breaks("socket hang up");
  await send("/orders/5/shipments", eve, { method: "POST", id: "ship-5" });
  await expect(app.settled()).rejects.toThrow("order.ship");

  const [step] = rowsOf("stuck-step", 0);
  const [letter] = rowsOf("dead-letters", 0);
  expect(step).toMatchObject({ step: "ship", handler: "shop.order.ship", tenantId: "umbrella" });
  expect(letter).toMatchObject({
    job: "shop.order.ship",
    jobId: step?.["jobId"],
    reason: expect.stringContaining("It is not known whether the step"),
  });
  await run(`steps resolve ${module} ${step?.["stepKey"]} --result {}`);
  await run(`queue move-back ${module} ${letter?.["queue"]} ${step?.["jobId"]}`);
  await app.settled();
  expect(rowsOf("dead-letters", 2, { MESSAGE_ID: step?.["jobId"] })[0]).toMatchObject({
    msg: "job.completed",
    outcome: "processed",
  });
});

test("set-aside: a job that the queue refuses, which is put back and runs", async () => {
  for (let n = 1; n <= 2; n++) app.faults.before("SendMessage", n).fail("InvalidMessageContents");
  await send("/orders/7/shipments", eve, { method: "POST" });
  app.clock.advance(90_000);
  await expect(app.settled()).rejects.toThrow("set aside");

  const [row] = rowsOf("set-aside", 0);
  expect(row).toMatchObject({ msg: "job.set_aside", job: "shop.order.ship" });
  expect(await run("outbox list")).toContain(row?.["jobId"]);
  await run(`outbox put-back --event ${row?.["jobId"]}`);
  app.clock.advance(90_000);
  await app.settled();
  expect(app.logs.slice(since)).toContainEqual(
    expect.objectContaining({ msg: "job.completed", jobId: row?.["jobId"], outcome: "processed" }),
  );
});

describe("a caller", () => {
  test("flooding-tenant: the tenant with the most requests and messages, and its limit", async () => {
    for (let n = 0; n < 5; n++) await send("/counts", eve);
    for (let n = 0; n < 3; n++) await place(`flood-${n}`, eve);
    expect((await send("/counts", ann)).status).toBe(200);
    await app.settled();

    expect(rowsOf("flooding-tenant", 0)[0]).toEqual({ tenantId: "umbrella", requests: 8 });
    expect(rowsOf("flooding-tenant", 1)).toMatchObject([
      { limit: "shop.order.count tenant-day", tenantId: "umbrella", number: 2, window: "day" },
    ]);
    expect(rowsOf("flooding-tenant", 2)[0]).toEqual({
      tenantId: "umbrella",
      handler: "shop.order.mail",
      runs: 3,
    });
    expect(await run(`limits list ${module}`)).toContain("umbrella");
    await run(`limits reset ${module} umbrella`);
    expect(await run(`limits list ${module}`)).not.toContain("umbrella");
  });

  test("flooding-tenant and throttling: the address with the most requests, in the access log of the API", () => {
    const template = templateOf([sheds]);
    const [stage = ""] = idsOf(template, "AWS::ApiGatewayV2::Stage");
    const format = JSON.stringify(properties(template, stage)["AccessLogSettings"]);
    const lines = ["192.0.2.1", "203.0.113.9", "203.0.113.9"].map((address) =>
      accessLine(format, { "identity.sourceIp": address, path: "/counts", status: "429" }),
    );

    expect(rowsOf("flooding-tenant", 3, {}, lines)).toEqual([
      { sourceIp: "203.0.113.9", requests: 2 },
      { sourceIp: "192.0.2.1", requests: 1 },
    ]);
    expect(rowsOf("throttling", 1, {}, lines)[0]).toEqual({
      ...{ sourceIp: "203.0.113.9", path: "/counts", refused: 2 },
    });
  });

  test("leaked-key: the requests that used the key; revoked, it is refused", async () => {
    const made = await send("/api-keys", eve, { body: { name: "leaked", roles: [] } });
    // Safe cast: as the route answers.
    const { id, key } = (await made.json()) as { readonly id: string; readonly key: string };
    const use = (requestId: string) =>
      app.fetch("/orders/1", { headers: { "x-api-key": key, "x-request-id": requestId } });
    expect((await use("leak-1")).status).toBe(200);

    expect(rowsOf("leaked-key", 0, { KEY_ID: id })).toEqual([
      { tenantId: "umbrella", handler: "shop.order.show", status: 200, requests: 1 },
    ]);
    const used = () => rowsOf("leaked-key", 1, { KEY_ID: id });
    expect(used()).toMatchObject([{ requestId: "leak-1", route: "/orders/:id", status: 200 }]);

    expect(await run(`api-keys revoke ${module}`, key)).toContain("of umbrella");
    app.clock.advance(5_000);
    expect((await use("leak-2")).status).toBe(401);
    expect(used()).toHaveLength(1);
  });

  test("tenant-wall: the handler and the user; suspended, the tenant gets in no more", async () => {
    expect((await send("/stolen", ann, { id: "steal-1" })).status).toBe(403);

    expect(rowsOf("tenant-wall", 0)).toMatchObject([
      { handler: "shop.order.steal", operation: "GetItem", userId: "ann", requestId: "steal-1" },
    ]);
    expect(rowsOf("tenant-wall", 1)).toEqual([
      { handler: "shop.order.steal", tenantId: "acme", userId: "ann", refused: 1 },
    ]);
    await run(`tenant create ${module} acme`);
    await run(`tenant suspend ${module} acme --reason probes`);
    app.clock.advance(5_000);
    expect((await send("/stolen", ann)).status).toBe(403);
    await run(`tenant resume ${module} acme`);
    app.clock.advance(5_000);
  });

  test("restore: the request that deleted a row, and the one that changed a setting", async () => {
    await place("6", eve);
    expect((await send("/orders/6", eve, { method: "DELETE", id: "delete-6" })).status).toBe(204);
    const body = { value: 7, tenantId: "umbrella", reason: "test" };
    const key = "shop:config:most-orders";
    expect((await send(`/config/${key}`, root, { method: "PUT", body, id: "set-1" })).status).toBe(
      200,
    );
    await app.settled();

    expect(rowsOf("restore", 0, { TENANT: "umbrella" })).toMatchObject([
      { requestId: "delete-6", userId: "eve", handler: "shop.order.delete" },
      { requestId: "place-6" },
    ]);
    expect(rowsOf("restore", 1)).toMatchObject([
      { key, action: "set", version: 1, userId: "root", requestId: "set-1" },
    ]);
  });
});

test("lossy-shutdown: the resource that did not close, and the exit code", async () => {
  const directory = mkdtempSync(join(tmpdir(), "keelson-runbook-"));
  try {
    const { child, logs, exited } = await startProcess(
      process.execPath,
      [join(import.meta.dirname, "../fixtures/life.ts")],
      {
        ...{ PORT: "0", NODE_ENV: "development", LOG_FORMAT: "json", AWS_ENDPOINT_URL: undefined },
        ...{ KEELSON_DIRECTORY: directory, HANGS: "resource" },
        SHUTDOWN: JSON.stringify({ lingerMs: 0, drainMs: 0, totalMs: 2_000 }),
      },
    );
    child.kill("SIGTERM");
    expect((await exited).code).toBe(1);
    expect(rowsOf("lossy-shutdown", 0, {}, logs)).toContainEqual(
      expect.objectContaining({ msg: "shutdown.close_failed", resource: "hangs" }),
    );
    expect(rowsOf("lossy-shutdown", 1, {}, logs)).toMatchObject([{ exitCode: 1 }]);
  } finally {
    rmSync(directory, { recursive: true, force: true, maxRetries: 20 });
  }
});

test("every query of the runbook was applied, or there is a reason why not", () => {
  const all = runbookPages.flatMap((page) =>
    queriesOf(page).map((_, nth) => `${page.name} ${nth}`),
  );

  expect([...applied, ...Object.keys(notCaused)].sort()).toEqual(all.sort());
});

test("no query shows a line that a browser has sent", () => {
  const sent = app.logs.map((line) => ({ ...line, source: "client" }));
  for (const page of runbookPages)
    for (const nth of queriesOf(page).keys()) {
      const name = `${page.name} ${nth}`;
      if (notCaused[name] === undefined && !ofAccessLog.has(name))
        expect(rowsOf(page.name, nth, {}, sent), name).toEqual([]);
    }
});

test("a query that is not applied here has known syntax", () => {
  for (const name of Object.keys(notCaused)) {
    const [page = "", nth] = name.split(" ");
    expect(rowsOf(page, Number(nth), {}, [])).toEqual([]);
  }
});
