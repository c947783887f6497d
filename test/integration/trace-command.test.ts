// `keelson trace`: one tree of a request, from logs and from tables.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { server as files } from "../../examples/files/server.ts";
import { runCommand } from "../../src/tools/cli/command.ts";
import type { TraceDocument } from "../../src/tools/cli/trace/document.ts";
import type { TraceNode } from "../../src/tools/cli/trace/node.ts";
import { nodesOf } from "../../src/tools/cli/trace/verdict.ts";
import { codeBlocks, textOf } from "../docs/markdown.ts";
import { broken, happens, server } from "../fixtures/trace-server.ts";
import { receiveHooks } from "../fixtures/traced-hosts.ts";

const ann = { id: "ann", tenantId: "acme" };
const gil = { id: "gil", tenantId: "globex" };
let folder: string;
let receiver: Awaited<ReturnType<typeof receiveHooks>>;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-trace-test-"));
  receiver = await receiveHooks();
});
afterAll(async () => {
  await receiver.close();
  await rm(folder, { recursive: true, maxRetries: 20 });
});

/** Runs the command on what an app has logged. */
async function trace(
  app: TestApp,
  module: string,
  id: string,
  options: { readonly args?: readonly string[]; readonly logs?: TestApp["logs"] } = {},
) {
  const path = join(folder, `${crypto.randomUUID()}.jsonl`);
  const { args = [], logs = app.logs } = options;
  await writeFile(path, logs.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const [out, err]: [string[], string[]] = [[], []];
  const code = await runCommand(["trace", module, id, "--logs", path, ...args], {
    env: app.env,
    clock: app.clock,
    print: (line) => void out.push(line),
    complain: (line) => void err.push(line),
    wait: async () => undefined,
    developmentSecret: () => Promise.reject(new Error("not to be asked for")),
  });
  return { code, text: out.join("\n"), err: err.join("\n") };
}

async function document(
  ...given: Parameters<typeof trace>
): Promise<TraceDocument & { readonly code: number }> {
  const [app, module, id, options = {}] = given;
  const { code, text } = await trace(app, module, id, {
    ...options,
    args: [...(options.args ?? []), "--json"],
  });
  return { code, ...(JSON.parse(text) as TraceDocument) };
}

/** What stands below what, and how it stands. */
function outline({ kind, name, state, children }: TraceNode): unknown {
  const shown = `${kind} ${name}: ${state}`.replace("  ", " ");
  const below = children.filter((child) => child.kind !== "claim").map(outline);
  return below.length === 0
    ? shown
    : [shown, ...below.sort((one, other) => (String(one) < String(other) ? -1 : 1))];
}

/** Lines without what differs from one run to the next. */
function shapeOf(lines: readonly string[]): readonly string[] {
  const same = (line: string) =>
    line
      .replaceAll(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g, "<ID>")
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
      .replaceAll(/\b[\da-f]{32}\b/g, "<trace>")
      .replaceAll(/\b(?:demo|files)-1\b/g, "<request>")
      .replaceAll(/ +\+?[\d.]+ m?s\b/g, " <n>")
      .replaceAll(/[├└│─]/g, " ")
      .replaceAll(/ +/g, " ")
      .trim();
  return lines.map(same).sort();
}

describe("the sample's POST /files", () => {
  const module = "examples/files/server.ts";
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp(files);
    const headers = { "x-request-id": "files-1", "idempotency-key": "k1" };
    for (const as of [ann, gil]) {
      const answer = await app.fetch("/files", {
        body: { name: "a.txt", sizeMb: 1 },
        as,
        headers: as === ann ? headers : {},
      });
      expect(answer.status).toBe(201);
    }
    await app.settled();
  });
  afterAll(() => app.close());

  const whole = [
    "request POST /files: done",
    "commit : done",
    [
      "event file.created: dispatched",
      [
        "consumer files.file.enqueue-scan: done",
        ["job files.file.scan: done", "delivery log: done"],
      ],
      "consumer files.usage:file.created: done",
    ],
  ];

  test("is one tree, whichever of its IDs is given", async () => {
    const line = (msg: string, field: string) =>
      String(app.logs.find((one) => one["msg"] === msg && one["requestId"] === "files-1")?.[field]);
    const ids = [
      "files-1",
      line("event.published", "publishedId"),
      line("job.enqueued", "enqueuedId"),
      line("delivery.enqueued", "deliveryId"),
      line("event.published", "trace_id"),
    ];
    for (const id of ids) {
      const { code, roots, stuck, tables, notes } = await document(app, module, id);
      expect([code, stuck, tables, notes, roots.map(outline)]).toEqual([
        0,
        undefined,
        true,
        [],
        [whole],
      ]);
    }
  });

  test("matches the screen at the start of docs/observe.md, except for times, IDs and the order of consumers", async () => {
    const [block] = codeBlocks("docs/observe.md", textOf("docs/observe.md"));
    const [command, ...screen] = block?.code.split("\n") ?? [];
    expect(command).toMatch(/^\$ npx keelson trace \S+ demo-1$/);
    expect(screen.length).toBeLessThan(24);
    const { text, code } = await trace(app, module, "files-1");
    expect([code, shapeOf(text.split("\n"))]).toEqual([0, shapeOf(screen)]);
  });

  test("is not found under an unknown ID", async () => {
    const { code, err } = await trace(app, module, "nobody");
    expect([code, err]).toEqual([1, expect.stringContaining('"nobody" is not found')]);
  });
});

describe("work that goes wrong", () => {
  const module = "test/fixtures/trace-server.ts";
  let app: TestApp;
  let requests = 0;
  let [requestId, trunk]: [string, string] = ["", ""];
  beforeAll(async () => {
    app = await startTestApp(server, { webhooks: { allowHttp: true, allowPrivate: true } });
  });
  afterAll(() => app.close());
  beforeEach(() => {
    requests += 1;
    [requestId, trunk] = [`request-${requests}`, `trunk-${requests}`];
  });
  afterEach(() => {
    Object.assign(happens, { carry: () => undefined, charge: () => undefined, hook: undefined });
    vi.restoreAllMocks();
  });
  const ask = async (path = `/trunks/${trunk}`, { as = ann, method = "POST" } = {}) =>
    app.fetch(path, { method, as, headers: { "x-request-id": requestId } });

  test("keeps a whole tree after a crash and a redelivery, with each attempt", async () => {
    happens.hook = receiver.url;
    let count = 0;
    happens.carry = () => {
      count += 1;
      if (count === 1) throw new Error("the handle came off");
    };
    app.faults.after("TransactWriteItems", 1).crash();
    await ask().catch(() => undefined);
    await app.settled();
    const { roots, code, stuck } = await document(app, module, requestId);
    expect([code, stuck, roots.map(outline)]).toEqual([0, undefined, [expect.any(Array)]]);
    expect(JSON.stringify(roots.map(outline))).toContain("delivery webhook: done");
    const { text } = await trace(app, module, requestId);
    expect(text).toMatch(/attempt 1 +failed .*the handle came off/);
    expect(text).toMatch(/attempt 2 +done/);
  });

  test("is stuck at a dead-lettered job", async () => {
    happens.carry = broken;
    await ask();
    await expect(app.settled()).rejects.toThrow("dead-letter");
    const { code, text } = await trace(app, module, requestId);
    expect(code).toBe(1);
    expect(text).toMatch(
      /Stuck: job trunks\.trunk\.carry [\da-f-]{36}\n {2}because: the lock is rusty\n {2}fix the cause, then move it back/,
    );
    const { stuck, roots } = await document(app, module, requestId);
    expect(stuck).toMatchObject({ kind: "job", state: "dead-lettered" });
    expect(JSON.stringify(roots.map(outline))).toContain("job trunks.trunk.carry: dead-lettered");
  });

  test("is stuck at an event left in the outbox, which is looked up by key alone", async () => {
    app.faults.before("PutEvents", 1).fail("InternalException");
    await ask();
    app.clock.advance(60_000);
    const sent = vi.spyOn(DynamoDBDocumentClient.prototype, "send");
    const { code, stuck, roots } = await document(app, module, requestId);
    const commands = new Set(sent.mock.calls.map(([command]) => command.constructor.name));
    expect([code, stuck]).toEqual([
      1,
      expect.objectContaining({ kind: "event", name: "trunk.sent", state: "in-outbox" }),
    ]);
    expect(roots.map(outline)).toEqual([
      ["request POST /trunks/:id: done", "commit : done", "event trunk.sent: in-outbox"],
    ]);
    expect([...commands].filter((name) => !/^(?:GetItem|Get|Query)Command$/.test(name))).toEqual(
      [],
    );
    // Also where no line tells of the event, and by its ID where there is no line at all.
    const { id } = stuck ?? {};
    const logs = app.logs.filter(({ msg }) => !/^event\./.test(String(msg)));
    expect((await document(app, module, requestId, { logs })).stuck).toEqual(
      stuck && expect.objectContaining({ id }),
    );
    expect((await document(app, module, String(id), { logs: [] })).stuck).toMatchObject({
      id,
      state: "in-outbox",
    });
    await app.settled();
    expect((await document(app, module, requestId)).stuck).toBeUndefined();
  });

  test("is waiting, not stuck, while a job is due in a month", async () => {
    const answer = await ask(`/trunks/${trunk}/reminders`);
    const { jobId } = (await answer.json()) as { readonly jobId: string };
    await app.settled();
    const { code, says, roots } = await document(app, module, requestId);
    expect([code, says]).toEqual([
      0,
      expect.stringMatching(/^Nothing is stuck: job trunks\.trunk\.remind .* is due at /),
    ]);
    expect(roots[0]?.children.at(-1)).toMatchObject({
      kind: "job",
      state: "waiting",
      confirmed: true,
    });
    // By its ID where there are no logs.
    expect((await document(app, module, jobId, { logs: [] })).says).toBe(says);
    const logs = [...app.logs];
    await ask(`/trunks/${jobId}/reminders`, { method: "DELETE" });
    expect((await document(app, module, jobId, { logs })).roots[0]?.children.at(-1)).toMatchObject({
      kind: "job",
      state: "taken-back",
    });
    const after = await document(app, module, jobId, { args: ["--no-tables"] });
    expect(JSON.stringify(after.roots.map(outline))).toContain("taken-back");
  });

  test("is stuck at a step with an unknown outcome", async () => {
    happens.charge = () => {
      throw new Error("socket hang up");
    };
    await ask(`/trunks/${trunk}/charges`);
    await expect(app.settled()).rejects.toThrow("dead-letter");
    // As far as it was when it had failed once.
    const logs = app.logs.slice(
      0,
      app.logs.findIndex(
        ({ msg, requestId: of, origRequestId = of }) =>
          msg === "queue.retry" && origRequestId === requestId,
      ) + 1,
    );
    const once = await document(app, module, requestId, { logs, args: ["--no-tables"] });
    expect([once.code, once.says]).toEqual([
      0,
      expect.stringMatching(
        /^Nothing is stuck: job trunks\.trunk\.charge .* has failed, and is retried at /,
      ),
    ]);
    const { code, text } = await trace(app, module, requestId);
    expect(code).toBe(1);
    expect(text).toMatch(/Stuck: step charge ([\da-f-]{36})\n/);
    expect(text).toMatch(
      /\$ npx keelson steps resolve test\/fixtures\/trace-server\.ts [\da-f-]{36} --retry/,
    );
  });

  test("never mixes two concurrent tenants that share a request ID", async () => {
    await Promise.all([ask(`/trunks/${trunk}`, { as: ann }), ask(`/trunks/${trunk}`, { as: gil })]);
    await app.settled();
    const { roots } = await document(app, module, requestId);
    expect(roots.map(({ tenantId }) => tenantId).sort()).toEqual(["acme", "globex"]);
    const idsOf = (root: TraceNode) => [
      ...new Set([...nodesOf(root.children)].flatMap(({ id }) => id ?? [])),
    ];
    const [one = [], other = []] = roots.map(idsOf);
    expect([one.length, other.length]).toEqual([2, 2]);
    for (const id of one) {
      expect(other).not.toContain(id);
      const asked = await document(app, module, id);
      expect(asked.roots).toEqual([expect.objectContaining({ tenantId: roots[0]?.tenantId })]);
    }
  });
});
