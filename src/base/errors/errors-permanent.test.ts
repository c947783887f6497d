// own process: it loads modules anew
import { expect, test, vi } from "vitest";
import { isPermanent, PermanentError } from "./errors.ts";

test("a permanent error has a message, a name and a cause", () => {
  const cause = new Error("410 Gone");
  const error = new PermanentError("the account is closed", { cause });
  expect(error).toBeInstanceOf(Error);
  expect([error.name, error.message, error.cause]).toEqual([
    "PermanentError",
    "the account is closed",
    cause,
  ]);
  expect("cause" in new PermanentError("the account is closed")).toBe(false);
});

test("two copies of the package recognize each other's permanent errors", async () => {
  vi.resetModules();
  const copy = await import("./errors.ts");
  expect(copy.PermanentError).not.toBe(PermanentError);
  expect(isPermanent(new copy.PermanentError("closed"))).toBe(true);
  expect(copy.isPermanent(new PermanentError("closed"))).toBe(true);
});

test("an application's subclass is permanent too", () => {
  class AccountClosed extends PermanentError {}
  expect(isPermanent(new AccountClosed("closed"))).toBe(true);
});

test.each([
  ["another error", new Error("closed")],
  ["an error of the same name", Object.assign(new Error("closed"), { name: "PermanentError" })],
  ["a brand that says something else", { [Symbol.for("keelson.permanent-error")]: "yes" }],
  ["null", null],
  ["undefined", undefined],
  ["a text", "PermanentError"],
  ["a function", () => new PermanentError("closed")],
])("%s is not permanent", (_what, thrown) => {
  expect(isPermanent(thrown)).toBe(false);
});
