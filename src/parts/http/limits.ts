import type { BootProblem } from "../../base/errors/boot.ts";

/** Limits on the requests that a server accepts. */
export interface Limits {
  /** Largest request body, in bytes. Default 1 MiB. */
  readonly bodyBytes?: number;
  /**
   * Total size of the request bodies that a container holds at a time, in bytes, from their arrival
   * until their requests end. A body beyond it fails with 503 `overloaded`. Default 128 MiB, or
   * `bodyBytes` if that is more. Has no effect in a Lambda function.
   */
  readonly bufferedBytes?: number;
  /**
   * Total size of the data that a container holds for clients that do not read it, in bytes:
   * responses and pipelined requests. Beyond it, the container closes the connections that have
   * held the most data for the longest time. Minimum 1 MiB. Default 128 MiB, or a quarter of a heap
   * below 512 MiB. Has no effect in a Lambda function.
   */
  readonly unreadBytes?: number;
}

const defaultBodyBytes = 1_048_576;
const defaultBufferedBytes = 134_217_728;

/** Returns the largest request body, in bytes. */
export function bodyLimit(limits: Limits | undefined): number {
  return limits?.bodyBytes ?? defaultBodyBytes;
}

/** Returns the total size of request bodies that are held at a time, in bytes. */
export function bufferLimit(limits: Limits | undefined): number {
  return limits?.bufferedBytes ?? Math.max(defaultBufferedBytes, bodyLimit(limits));
}

const bytes = (value: unknown) =>
  Number.isSafeInteger(value) && Number(value) >= 0 ? undefined : "a whole number of bytes";

const atLeastMebibyte = (value: unknown) =>
  Number.isSafeInteger(value) && Number(value) >= 1_048_576
    ? undefined
    : "a whole number of bytes from 1,048,576";

/**
 * Checks of the limits. A check returns a description of valid values, or `undefined` for a valid
 * value.
 */
export const limitChecks = Object.freeze({
  bodyBytes: bytes,
  bufferedBytes: bytes,
  unreadBytes: atLeastMebibyte,
});

/**
 * Returns conflicts between limits. A server whose budget is below `bodyBytes` cannot accept every
 * allowed body.
 */
export function limitProblems(
  limits: Limits | undefined,
): Pick<BootProblem, "key" | "rule" | "message" | "fix">[] {
  const budget = limits?.bufferedBytes;
  const body = bodyLimit(limits);
  if (typeof budget !== "number" || !(budget < body)) return [];
  const message = `${budget} is below limits.bodyBytes, ${body}`;
  return [
    {
      key: "limits.bufferedBytes",
      rule: "limits-order",
      message,
      fix: `use ${body} or more, or lower limits.bodyBytes`,
    },
  ];
}
