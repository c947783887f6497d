import {
  AccessDeniedError,
  buildServer,
  ConflictError,
  NotFoundError,
  type PipelineContext,
  PipelineError,
  ValidationError,
} from "keelson";
import { expect } from "vitest";
import type { Fixture } from "./fixture.ts";
import { withLambda } from "./lambda.ts";
import type { Row } from "./row.ts";

/** Sections 2.7 and 7: the uniform response and the classes. */
export const errorRows: readonly Row[] = [
  {
    section: "2.7",
    sentence: "`error` | string error code | always",
    prove: async (fixture) => {
      for (const { body } of await everyError(fixture))
        expect(body).toMatchObject({ error: expect.stringMatching(/^[a-z_]+$/) });
    },
  },
  {
    section: "2.7",
    sentence: "`message` | string | always",
    prove: async (fixture) => {
      for (const { body } of await everyError(fixture))
        expect(body).toMatchObject({ message: expect.stringMatching(/./) });
    },
  },
  {
    section: "2.7",
    sentence: "`requestId` | string | always",
    prove: async (fixture) => {
      for (const { body, requestId } of await everyError(fixture))
        expect(body).toMatchObject({ requestId });
    },
  },
  {
    section: "2.7",
    sentence: "`fields` | array of `{ field: string, error: string }` | only for validation errors",
    prove: async (fixture) => {
      const fields = [{ field: "size.mb", error: "too large" }];
      expect((await thrown(fixture, new ValidationError(fields))).body).toMatchObject({ fields });
      for (const { body } of await everyError(fixture)) {
        const isValidation = (body as { error: string }).error === "validation_error";
        expect("fields" in (body as object)).toBe(isValidation);
      }
      class QuotaError extends PipelineError {
        readonly fields = fields;
      }
      expect(
        Object.keys((await thrown(fixture, new QuotaError("Over quota", 409))).body as object),
      ).not.toContain("fields");

      const invalid = await fixture.fetch(
        "/files/f1/download-url?expiresSeconds=1&expiresSeconds=2",
        {
          as: fixture.newCaller(),
        },
      );
      expect([invalid.status, invalid.body]).toEqual([
        422,
        expect.objectContaining({
          fields: [{ field: "expiresSeconds", error: expect.any(String) }],
        }),
      ]);
    },
  },
  {
    section: "2.7",
    sentence: "stack trace | string | only in the dev environment",
    prove: async (fixture) => {
      for (const environment of ["development", "test", "production"] as const) {
        const app = await fixture.start(buildServer({ features: [fixture.probe], environment }));
        for (const error of [new NotFoundError("file", "1"), new Error("broken")]) {
          const { body } = await thrown(fixture, error, { app });
          const expected = environment === "development" ? { stack: error.stack } : {};
          expect(body).toEqual({
            error: expect.any(String),
            message: expect.any(String),
            requestId: expect.any(String),
            ...expected,
          });
        }
      }
    },
  },
  {
    section: "7",
    sentence: "`NotFoundError` | `(<resource>, <id>)` | 404 | `not_found` | warn | no",
    prove: async (fixture) => {
      const { status, body, logs } = await thrown(fixture, new NotFoundError("file", "f1"));
      expect([status, body]).toEqual([404, expect.objectContaining({ error: "not_found" })]);
      expectLogged(logs, { level: "warn", error: "not_found", status: 404 });
    },
  },
  {
    section: "7",
    sentence: "`AccessDeniedError` | `(<permission>)` | 403 | see below | warn | no",
    prove: async (fixture) => {
      const { status, body, logs } = await thrown(fixture, new AccessDeniedError("files.delete"));
      expect([status, body]).toEqual([403, expect.objectContaining({ error: "access_denied" })]);
      expectLogged(logs, { level: "warn", error: "access_denied", status: 403 });
    },
  },
  {
    section: "7",
    sentence:
      "`ValidationError` | `([{ field, error }])` | 422 | `validation_error` (message: fixed text for failed validation) | warn | no",
    prove: async (fixture) => {
      const fields = [{ field: "name", error: "is missing" }];
      const { status, body, logs, requestId } = await thrown(fixture, new ValidationError(fields));
      expect([status, body]).toEqual([
        422,
        { error: "validation_error", message: "Validation failed", requestId, fields },
      ]);
      expectLogged(logs, { level: "warn", error: "validation_error", status: 422 });
    },
  },
  {
    section: "7",
    sentence: "`ConflictError` | `(<conflict code>)` | 409 | see below | warn | no",
    prove: async (fixture) => {
      const { status, body, logs } = await thrown(fixture, new ConflictError("file_locked"));
      expect([status, body]).toEqual([409, expect.objectContaining({ error: "file_locked" })]);
      expectLogged(logs, { level: "warn", error: "file_locked", status: 409 });
    },
  },
  {
    section: "7",
    sentence:
      "`PipelineError` | `(<message>, <status>)` | any given status | see below | see below | see below",
    prove: async (fixture) => {
      for (const status of [400, 418, 429, 500, 503, 599]) {
        const answer = await thrown(fixture, new PipelineError("Not at the moment", status));
        expect([answer.status, answer.body]).toEqual([
          status,
          expect.objectContaining({ error: "pipeline_error", message: "Not at the moment" }),
        ]);
        expectLogged(answer.logs, {
          level: status < 500 ? "warn" : "error",
          error: "pipeline_error",
          status,
        });
      }
    },
  },
  {
    section: "7",
    sentence:
      "unknown error | | 500 | see below | error | yes (server log only, never sent to client)",
    prove: async (fixture) => {
      const secret = "postgres://user:hunter2@db";
      for (const error of [
        new Error(secret),
        new TypeError(secret),
        secret,
        { message: secret },
        null,
        undefined,
      ]) {
        const { status, body, logs, requestId } = await thrown(fixture, error);
        expect([status, body]).toEqual([
          500,
          { error: "internal_error", message: "Internal server error", requestId },
        ]);
        expect(logs).toMatchObject([{ level: "error", msg: "request.failed", status: 500 }]);
        if (error instanceof Error)
          expect(logs).toMatchObject([{ stack: error.stack, message: secret }]);
      }
    },
  },
  {
    section: "1",
    sentence: "Error classes map to HTTP statuses.",
    prove: async (fixture) => {
      const errors = [
        new NotFoundError("file", "1"),
        new AccessDeniedError("x"),
        new ValidationError([]),
        new ConflictError("x"),
        new PipelineError("x", 429),
        new Error("x"),
      ];
      const statuses = await Promise.all(
        errors.map(async (error) => (await thrown(fixture, error)).status),
      );
      expect(statuses).toEqual([404, 403, 422, 409, 429, 500]);
    },
  },
  {
    section: "1",
    sentence: "One middleware turns every error into a uniform response and logs it.",
    prove: oneBody,
  },
  {
    section: "7.1",
    sentence: "One middleware catches all errors and returns the body in 2.7.",
    prove: oneBody,
  },
  {
    section: "7.1",
    sentence: "The `message` for not-found has the shape `<resource> <id> not found`.",
    prove: async (fixture) => {
      const { body } = await thrown(fixture, new NotFoundError("file", "f-1"));
      expect(body).toMatchObject({ message: "file f-1 not found" });
      expect((await fixture.fetch("/nowhere")).body).toMatchObject({
        message: "route /nowhere not found",
      });
    },
  },
  {
    section: "7.2",
    sentence: "Environment: dev responses include error, message and stack trace; …",
    prove: async (fixture) => {
      const app = await fixture.start(
        buildServer({ features: [fixture.probe], environment: "development" }),
      );
      const { body } = await thrown(fixture, new ConflictError("file_locked"), { app });
      expect(body).toMatchObject({
        error: "file_locked",
        message: "Conflict: file_locked",
        stack: expect.stringContaining("ConflictError"),
      });
    },
  },
  {
    section: "7.2",
    sentence:
      "… production responses include error, message and requestId and never a stack trace.",
    prove: async (fixture) => {
      const server = buildServer({ features: [fixture.probe], environment: "production" });
      const app = await fixture.start(server);
      for (const { body } of await everyError(fixture, { app })) {
        expect(body).toMatchObject({
          error: expect.any(String),
          message: expect.any(String),
          requestId: expect.any(String),
        });
        expect(JSON.stringify(body)).not.toMatch(/stack|\bat .*:\d+:\d+/);
      }
      await withLambda(server, fixture.app.env, async ({ invoke }) => {
        const { statusCode, body } = await invoke({
          path: fixture.route(() => Promise.reject(new Error("broken"))),
        });
        expect([statusCode, Object.keys(JSON.parse(body ?? ""))]).toEqual([
          500,
          ["error", "message", "requestId"],
        ]);
      });
    },
  },
  {
    section: "7.3",
    sentence: "Every error is logged automatically; handlers need no try/catch for logging.",
    prove: async (fixture) => {
      for (const { body, logs, status } of await everyError(fixture)) {
        const { error } = body as { error: string };
        expect(logs.filter(({ msg }) => msg === "request.failed")).toMatchObject([
          { level: status < 500 ? "warn" : "error", error, status },
        ]);
      }
    },
  },
];

type Options = Pick<NonNullable<Parameters<Fixture["handle"]>[1]>, "app">;

/** What a client sees, and the server logs, of something that a handler throws. */
function thrown({ handle }: Fixture, error: unknown, options: Options = {}) {
  return handle(() => {
    throw error;
  }, options);
}

/** One answer of each kind of error: thrown by handlers, and by the framework before it gets to one. */
async function everyError(fixture: Fixture, options: Options = {}) {
  const { fetch, newCaller, route } = fixture;
  const json = { "content-type": "application/json" };
  return [
    await thrown(fixture, new NotFoundError("file", "1"), options),
    await thrown(fixture, new AccessDeniedError("files.delete"), options),
    await thrown(fixture, new ValidationError([{ field: "a", error: "b" }]), options),
    await thrown(fixture, new ConflictError("file_locked"), options),
    await thrown(fixture, new PipelineError("Later", 503), options),
    await thrown(fixture, new Error("broken"), options),
    await thrown(fixture, "broken", options),
    await fixture.handle(
      (ctx: PipelineContext) => ctx.config({ id: "no:config:key" } as never),
      options,
    ), // safe: it must fail
    await fetch("/nowhere", options),
    await fetch("/%zz", options),
    await fetch("/signed-in", options),
    await fetch("/signed-in", { ...options, headers: { authorization: "Bearer a.b.c" } }),
    await fetch("/admin", { ...options, as: newCaller() }),
    await fetch("/admin", { ...options, method: "DELETE" }),
    await fetch(
      route(() => 1),
      { ...options, method: "POST", headers: json, body: "{" },
    ),
    await fetch(
      route(() => 1),
      { ...options, method: "POST", headers: { "content-type": "text/plain" }, body: "x" },
    ),
    await fetch(
      route(() => 1),
      {
        ...options,
        method: "POST",
        headers: json,
        body: JSON.stringify({ large: "x".repeat(1_100_000) }),
      },
    ),
  ];
}

async function oneBody(fixture: Fixture): Promise<void> {
  for (const { body, headers, logs, requestId, status } of await everyError(fixture)) {
    expect(status).toBeGreaterThanOrEqual(400);
    expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
    const { fields: _fields, ...rest } = body as Record<string, unknown>;
    expect(rest).toEqual({ error: expect.any(String), message: expect.any(String), requestId });
    expect(logs).toContainEqual(expect.objectContaining({ msg: "request.failed", status }));
  }
}

function expectLogged(
  logs: readonly Readonly<Record<string, unknown>>[],
  record: Readonly<Record<string, unknown>>,
): void {
  expect(logs).toMatchObject([{ msg: "request.failed", ...record }]);
  expect(logs.some((each) => "stack" in each)).toBe(record["level"] === "error");
}
