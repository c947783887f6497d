import { describe, expect, it } from "vitest";
import { LockedValueError } from "../config/read/cascade.ts";
import { AccessDeniedError, ConflictError, FrameworkError, NotFoundError, PipelineError, ValidationError } from "./errors.ts";

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
  )("is %s, whatever a bundler calls the class", (name, original) => {
    // What a bundler that shortens names makes of a declared class: only a member of its own survives.
    expect(Object.getOwnPropertyDescriptor(original, "name")).toMatchObject({ value: name, enumerable: true });
  });

  it("is that of an application's class, or what this says it is", () => {
    class Gone extends NotFoundError {}
    class g extends NotFoundError {
      static override readonly name = "FileGoneError";
    }
    expect([new Gone("file", "1").name, new g("file", "1").name]).toEqual(["Gone", "FileGoneError"]);
  });
});
