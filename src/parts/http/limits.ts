import type { BootProblem } from "../../base/errors/boot.ts";
import type { ConfigKeyHandle } from "../config/declare/key.ts";

/** Limits on the requests that a server accepts. */
export interface Limits {
  /** Largest request body, in bytes. A handler can have its own. Default 1 MiB. */
  readonly bodyBytes?: number;
  /**
   * Maximum size of all request bodies that a container holds at a time, in bytes. Each body counts
   * from its arrival until its request ends. A request above the limit fails with 503 `overloaded`.
   * Must be at least the largest `bodyBytes`, including the handlers'. A multipart body counts once, though
   * it takes at least twice its size. Default 128 MiB, or the largest `bodyBytes` if that is more. Has
   * no effect in a Lambda function.
   */
  readonly bufferedBytes?: number;
  /**
   * Maximum size of the responses and pipelined requests that a container holds for clients that do
   * not read, in bytes. Above it, the container closes the connections that have held the most data
   * for the longest time. Minimum 1 MiB. Default 128 MiB, or a quarter of a heap below 512 MiB. Has
   * no effect in a Lambda function.
   */
  readonly unreadBytes?: number;
  /**
   * Maximum number of requests of one tenant that a process works on at a time: a number from 1, or
   * a number key of scope `system` or `tenant`. A request above it fails with 429
   * `too_many_requests` before its body is read; a streamed response counts until it ends. keelson's
   * own routes and callers without a tenant do not count. While the key cannot be read, its default
   * applies, or else no limit. See
   * `docs/limits.md#requests-in-flight`. Default: no limit.
   */
  readonly inFlightPerTenant?: number | ConfigKeyHandle<number>;
}

/** Limits on the requests of one handler, in place of the server's. */
export interface BodyLimits {
  /**
   * Largest request body, in bytes, above or below the server's limit. A larger one is a 413. Lambda
   * functions get at most 6 MB from their front, and 1 MB from a load balancer. Default:
   * `limits.bodyBytes` of the server.
   */
  readonly bodyBytes?: number;
}

const defaultBodyBytes = 1_048_576;

export function bodyLimit(limits: Limits | undefined): number {
  return limits?.bodyBytes ?? defaultBodyBytes;
}

const wholeFrom = (least: number, valid: string) => (value: unknown) =>
  Number.isSafeInteger(value) && Number(value) >= least ? undefined : valid;
const bytes = wholeFrom(0, "a whole number of bytes");
const numberFrom1 = wholeFrom(1, "a whole number from 1, or a number key");

/** Each returns `undefined` for a valid value, otherwise a description of valid values. */
export const limitChecks = Object.freeze({
  bodyBytes: bytes,
  bufferedBytes: bytes,
  unreadBytes: wholeFrom(1_048_576, "a whole number of bytes from 1,048,576"),
  inFlightPerTenant: (value: unknown) =>
    typeof Object(value).id === "string" ? undefined : numberFrom1(value),
});

/** With `bufferedBytes` below a `bodyBytes`, a server could not accept every allowed body. */
export function limitProblems(
  limits: Limits | undefined,
  name = "limits.bodyBytes",
  body = bodyLimit(limits),
): BootProblem[] {
  const budget = limits?.bufferedBytes;
  if (typeof budget !== "number" || !(budget < body)) return [];
  const message = `${budget} is below ${name}, ${body}`;
  const fix = `use ${body} or more, or lower ${name}`;
  return [{ feature: "", key: "limits.bufferedBytes", rule: "limits-order", message, fix }];
}

/** A handler, with the largest body that it declares. */
export interface LimitedHandler {
  readonly name: string;
  readonly bodyBytes?: number | undefined;
}

/** Applies {@link limitProblems} to the limits of handlers. */
export function bodyProblems(
  handlers: Iterable<LimitedHandler>,
  limits: Limits | undefined,
): BootProblem[] {
  return [...handlers].flatMap(({ name, bodyBytes = 0 }) =>
    limitProblems(limits, `${name}.limits.bodyBytes`, bodyBytes),
  );
}
