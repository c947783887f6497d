import { buildServer, type Logger } from "keelson";
import { expect } from "vitest";
import { signToken } from "../../src/base/identity/token.ts";
import { systemClock } from "../../src/base/process/clock.ts";
import { type Fixture, plans } from "./fixture.ts";
import { withLambda } from "./lambda.ts";
import type { Row } from "./row.ts";

const levels = ["debug", "info", "warn", "error"] as const;
const unset = {
  LOG_LEVEL: undefined,
  LOG_FORMAT: undefined,
  POWERTOOLS_LOG_LEVEL: undefined,
  AWS_LAMBDA_LOG_LEVEL: undefined,
};

/** Section 2.5, the logger, and the log levels of section 8. */
export const loggingRows: readonly Row[] = [
  {
    section: "2.5",
    sentence:
      "`info`, `warn`, `error`, `debug` | `(msg: string, data?: Record<string, unknown>) => void`",
    prove: async ({ handle }) => {
      const { logs } = await handle((ctx) => {
        for (const level of levels) {
          expect(ctx.log[level](`plain.${level}`)).toBeUndefined();
          expect(ctx.log[level](`with.${level}`, { amount: 1 })).toBeUndefined();
        }
      });
      expect(logs.map(({ level, msg, amount }) => [level, msg, amount])).toEqual(
        levels.flatMap((level) => [
          [level, `plain.${level}`, undefined],
          [level, `with.${level}`, 1],
        ]),
      );
    },
  },
  {
    section: "2.5",
    sentence: "`child` | `(context: Record<string, unknown>) => Logger`",
    prove: async ({ handle }) => {
      const { logs, requestId } = await handle((ctx) => {
        const child: Logger = ctx.log.child({ batch: "b1" });
        child.child({ item: 2 }).info("inner");
        child.info("outer");
        ctx.log.info("parent");
      });
      expect(logs).toEqual([
        expect.objectContaining({ msg: "inner", batch: "b1", item: 2, requestId }),
        expect.objectContaining({ msg: "outer", batch: "b1", requestId }),
        expect.not.objectContaining({ batch: "b1" }),
      ]);
    },
  },
  {
    section: "2.5",
    sentence:
      "A server log record is JSON with fields `level`, the context fields, `msg`, and the fields of `data`.",
    prove: async ({ app, newCaller, probe, route }) => {
      const as = newCaller();
      await withLambda(
        buildServer({ features: [probe] }),
        { ...unset, ...app.env },
        async ({ invoke, lines }) => {
          const path = route(
            (ctx) => void ctx.log.info("file\nread", { name: "a\u2028b", sizes: [1, { x: null }] }),
          );
          await invoke({ path, headers: { "x-request-id": "r-record" }, as });

          expect(lines).toHaveLength(1);
          const record = JSON.parse(lines[0] ?? "") as Record<string, unknown>;
          expect(record).toEqual({
            level: "info",
            requestId: "r-record",
            tenantId: as.tenantId,
            userId: as.id,
            handler: "probe.script.run",
            trace_id: expect.stringMatching(/^[\da-f]{32}$/),
            msg: "file\nread",
            name: "a\u2028b",
            sizes: [1, { x: null }],
            time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
          });
          expect(Object.keys(record)).toEqual([
            "level",
            "requestId",
            "tenantId",
            "userId",
            "handler",
            "trace_id",
            "msg",
            "name",
            "sizes",
            "time",
          ]);
        },
      );
    },
  },
  {
    section: "2.5",
    sentence:
      "Automatic child-logger context per request …: `requestId` (string), `tenantId`, `userId`, `handler` (shape `<feature>.<entity>.<operation>`).",
    prove: automaticContext,
  },
  {
    section: "1",
    sentence: "The framework creates a child logger per request … with automatic context.",
    prove: automaticContext,
  },
  {
    section: "6.3",
    sentence: "Request ID propagation: a write handler's `ctx.log` has `requestId`; …",
    prove: async ({ handle }) => {
      const { logs, requestId } = await handle((ctx) => void ctx.log.info("written"), {
        method: "POST",
      });
      expect(requestId).not.toBe("");
      expect(logs).toEqual([
        expect.objectContaining({ msg: "written", requestId, handler: "probe.script.write" }),
      ]);
    },
  },
  {
    section: "8",
    sentence: "Log levels | dev `debug`, production `info`; …",
    prove: async (fixture) => {
      expect(await printedLevels(fixture, "development")).toEqual([
        "debug",
        "info",
        "warn",
        "error",
      ]);
      expect(await printedLevels(fixture, "production")).toEqual(["info", "warn", "error"]);
    },
  },
  {
    section: "8",
    sentence: "… overridden by environment variable `LOG_LEVEL`; …",
    prove: async (fixture) => {
      for (const [index, level] of levels.entries()) {
        for (const environment of ["development", "production"] as const) {
          expect(await printedLevels(fixture, environment, { LOG_LEVEL: level })).toEqual(
            levels.slice(index),
          );
        }
      }
      expect(await printedLevels(fixture, "production", { LOG_LEVEL: "DEBUG" })).toEqual([
        ...levels,
      ]);
    },
  },
  {
    section: "8",
    sentence:
      "… format by `LOG_FORMAT` (value `pretty` for human-readable, otherwise JSON) | logging",
    prove: async ({ app, probe, route }) => {
      const printed = (LOG_FORMAT: string | undefined) => {
        const id = `r-as-${LOG_FORMAT === "" ? "nothing" : LOG_FORMAT}`;
        return withLambda(
          buildServer({ features: [probe] }),
          { ...unset, ...app.env, LOG_FORMAT },
          async ({ invoke, lines }) => {
            await invoke({
              path: route((ctx) => void ctx.log.info("file.read", { name: "a" })),
              headers: { "x-request-id": id },
            });
            // Without what earlier servers still say in the background.
            return lines.filter((line) => line.includes("file.read") && line.includes(id));
          },
        );
      };
      const [pretty] = await printed("pretty");
      expect(() => JSON.parse(pretty ?? "")).toThrow();
      for (const part of ["file.read", "name", "r-as-pretty"]) expect(pretty).toContain(part);
      for (const other of [undefined, "json", "", "text"]) {
        const lines = await printed(other);
        // Seen as text first: a line that is no JSON shows what it is.
        expect(lines).toEqual([expect.stringMatching(/^\{.*\}$/)]);
        expect(lines.map((line) => JSON.parse(line))).toMatchObject([
          { level: "info", msg: "file.read", name: "a" },
        ]);
      }
    },
  },
];

async function automaticContext({
  app,
  fetch,
  handle,
  newCaller,
  probe,
  route,
}: Fixture): Promise<void> {
  const [ann, bob] = [newCaller(), newCaller()];
  const script = async (ctx: Parameters<Parameters<Fixture["handle"]>[0]>[0]) => {
    ctx.log.info("outer");
    await ctx.query("plans.plan.current", {});
  };
  for (const as of [ann, bob]) {
    const { logs, requestId } = await handle(script, { as });
    const context = { requestId, tenantId: as.tenantId, userId: as.id };
    expect(logs).toEqual([
      expect.objectContaining({ ...context, msg: "outer", handler: "probe.script.run" }),
      expect.objectContaining({ ...context, msg: "plan.read", handler: "plans.plan.current" }),
    ]);
  }
  const { logs } = await fetch("/files/f1/download-url?expiresSeconds=1", { as: ann });
  expect(logs).toEqual([expect.objectContaining({ handler: "files.file.download-url" })]);

  // What no handler gets is somebody's request all the same.
  const refused = [
    await fetch("/nowhere", { as: ann }),
    await fetch("/%zz", { as: ann }),
    await fetch("/signed-in", { as: ann, method: "DELETE" }),
    await fetch(
      route(() => 1),
      { as: ann, body: "x".repeat(1_100_000), headers: { "content-type": "application/json" } },
    ),
    await fetch(
      route(() => 1),
      { as: ann, body: "{", headers: { "content-type": "application/json" } },
    ),
  ];
  expect(refused.map(({ status }) => status)).toEqual([404, 400, 405, 413, 400]);
  for (const { logs } of refused) {
    expect(logs).toEqual([
      expect.objectContaining({ msg: "request.failed", tenantId: ann.tenantId, userId: ann.id }),
    ]);
  }
  const forged = await fetch("/nowhere", { headers: { authorization: "Bearer a.b.c" } });
  expect([forged.status, forged.logs]).toEqual([
    404,
    [expect.not.objectContaining({ tenantId: expect.anything() })],
  ]);
  await withLambda(
    buildServer({ features: [probe] }),
    { ...unset, ...app.env },
    async ({ invoke, logs }) => {
      const secret = String(app.env["KEELSON_AUTH_SECRET"]);
      const token = await signToken(
        { secret, userId: bob.id, tenantId: bob.tenantId, roles: [] },
        systemClock,
      );
      expect((await invoke({ path: "/nowhere", as: ann })).statusCode).toBe(404);
      expect(
        (await invoke({ path: "/nowhere", headers: { authorization: `Bearer ${token}` } }))
          .statusCode,
      ).toBe(404);
      expect(logs()).toMatchObject([
        { msg: "request.failed", tenantId: ann.tenantId, userId: ann.id },
        { msg: "request.failed", tenantId: bob.tenantId, userId: bob.id },
      ]);
    },
  );
}

async function printedLevels(
  { app, probe, route }: Fixture,
  environment: "development" | "production",
  variables: Readonly<Record<string, string>> = {},
): Promise<unknown[]> {
  const server = buildServer({ features: [plans, probe], environment });
  return withLambda(server, { ...unset, ...app.env, ...variables }, async ({ invoke, logs }) => {
    await invoke({
      path: route((ctx) => {
        for (const level of levels) ctx.log[level](level);
      }),
    });
    return logs().map(({ level }) => level);
  });
}
