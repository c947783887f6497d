import { runInNewContext } from "node:vm";
import { describe, expect, it, test } from "vitest";
import { LockedValueError } from "../../parts/config/read/cascade.ts";
import {
  AccessDeniedError,
  ConflictError,
  FrameworkError,
  type MessageDetails,
  NotFoundError,
  PipelineError,
  systemCode,
  ValidationError,
} from "./errors.ts";

describe("the message of an error", () => {
  const fields = [{ field: "a", error: "b" }];
  const cause = new Error("why");
  it.each([
    [
      "NotFoundError",
      (given?: MessageDetails | string) => new NotFoundError("file", "7", given),
      "file 7 not found",
      "not_found",
    ],
    [
      "AccessDeniedError",
      (given?: MessageDetails | string) => new AccessDeniedError("read", given),
      "Access denied: read",
      "access_denied",
    ],
    [
      "ValidationError",
      (given?: MessageDetails | string) => new ValidationError(fields, given),
      "Validation failed",
      "validation_error",
    ],
    [
      "ConflictError",
      (given?: MessageDetails | string) => new ConflictError("file_locked", given),
      "Conflict: file_locked",
      "file_locked",
    ],
  ])("of %s is the default or a custom one, and its code stays", (_name, make, usual, code) => {
    expect(make()).toMatchObject({ message: usual, code });
    expect(make("Another")).toMatchObject({ message: "Another", code, headers: {} });
    const headers = { "retry-after": "1" };
    expect(make({ message: "Another", cause, headers })).toMatchObject({
      message: "Another",
      code,
      cause,
      headers,
    });
    expect(make({ cause })).toMatchObject({ message: usual, code, cause });
    expect("cause" in make("Another")).toBe(false);
  });
});

it("gives error handlers in the style of http-errors its status and a message that may be sent, but adds neither to a log line", () => {
  for (const error of [
    new NotFoundError("file", "7"),
    new ConflictError("taken"),
    new PipelineError("Rebuilding", 503),
  ]) {
    const { statusCode, expose, status } = error;
    expect([statusCode, expose]).toEqual([status, true]);
    expect(Object.keys(error)).not.toEqual(expect.arrayContaining(["statusCode"]));
  }
  // As code did that gave errors these members before they had them.
  expect(
    Object.assign(new NotFoundError("file", "7"), { statusCode: 410, expose: false }),
  ).toMatchObject({
    ...{ statusCode: 410, expose: false, status: 404 },
  });
});

describe("the name of an error", () => {
  it.each(
    Object.entries({
      AccessDeniedError,
      ConflictError,
      FrameworkError,
      LockedValueError,
      NotFoundError,
      PipelineError,
      ValidationError,
    }),
  )("is %s, even if a bundler renames the class", (name, original) => {
    // What a bundler that shortens names makes of a declared class: only a member of its own survives.
    expect(Object.getOwnPropertyDescriptor(original, "name")).toMatchObject({
      value: name,
      enumerable: true,
    });
  });

  it("of an application's class is the class's own, unless the error sets one", () => {
    class Gone extends NotFoundError {}
    class g extends NotFoundError {
      static override readonly name = "FileGoneError";
    }
    expect([new Gone("file", "1").name, new g("file", "1").name]).toEqual([
      "Gone",
      "FileGoneError",
    ]);
  });
});

test("returns the code of an error, even from another context", () => {
  expect(systemCode(Object.assign(new Error("it is there"), { code: "EEXIST" }))).toBe("EEXIST");
  const foreign: unknown = runInNewContext(
    'Object.assign(new Error("it is there"), { code: "EEXIST" })',
  );
  expect(foreign).not.toBeInstanceOf(Error);
  expect(systemCode(foreign)).toBe("EEXIST");
});

test.each([new Error("no code"), null, undefined, "EEXIST", 1, {}])(
  "finds no code in %s",
  (error) => {
    expect(systemCode(error)).toBeUndefined();
  },
);
