import { expect, test, vi } from "vitest";
import type { RequestScope } from "../../app/runtime/scope.ts";
import { ConflictError } from "../../base/errors/errors.ts";
import { logAnswered } from "./run-middlewares.ts";

test("a span records an error that a middleware answers, with the status of the response", () => {
  const spans = { thrown: vi.fn() };
  const log = { warn: vi.fn(), error: vi.fn() };
  const scope = { runtime: { environment: "production" }, log, spans } as unknown as RequestScope; // as much of it as is read
  const [broken, taken] = [new Error("broken"), new ConflictError("taken")];
  logAnswered(scope, broken, { statusCode: 502 });
  logAnswered(scope, taken, undefined);

  expect(spans.thrown.mock.calls).toEqual([
    [broken, 502],
    [taken, 409],
  ]);
  expect([log.error, log.warn].map(({ mock }) => mock.calls.length)).toEqual([1, 1]);
});
