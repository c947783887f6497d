import { expect, test } from "vitest";
import { ListenError, listenError } from "./listen-error.ts";

const failure = (code: string) => Object.assign(new Error(`listen ${code}: :::80`), { code });

test.each([
  [
    "EADDRINUSE",
    "Port 80 is in use: stop the process that listens on it, or set PORT to another one",
  ],
  ["EACCES", "Port 80 may not be used by this user: set PORT to one above 1023"],
])("%s becomes one sentence that tells how to fix it", (code, message) => {
  const error = listenError(failure(code), 80);
  expect(error).toBeInstanceOf(ListenError);
  expect((error as ListenError).message).toBe(message); // safe: it is one
});

test("leaves any other error unchanged", () => {
  const error = failure("EADDRNOTAVAIL");
  expect(listenError(error, 80)).toBe(error);
});
