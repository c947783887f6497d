import type { BootProblem } from "../../base/errors/boot.ts";

/** What a server takes of requests. */
export interface Limits {
  /** The largest request body in bytes. Default 1 MiB. */
  readonly bodyBytes?: number;
  /**
   * How many bytes of request bodies a container holds at once, from their arrival until their requests are done; beyond
   * that a body is 503 `overloaded`. Default 128 MiB, or `bodyBytes` where that is more. A Lambda function has none.
   */
  readonly bufferedBytes?: number;
  /**
   * How many bytes a container holds at once for clients that do not read them: responses, and pipelined requests. Beyond
   * that it cuts the connections that hold most for longest. At least 1 MiB. Default 128 MiB, in a heap below 512 MiB a
   * quarter of it. A Lambda function has none.
   */
  readonly unreadBytes?: number;
}

const defaultBodyBytes = 1_048_576;
const defaultBufferedBytes = 134_217_728;

/** The largest request body in bytes. */
export function bodyLimit(limits: Limits | undefined): number {
  return limits?.bodyBytes ?? defaultBodyBytes;
}

/** How many bytes of request bodies are held at once. */
export function bufferLimit(limits: Limits | undefined): number {
  return limits?.bufferedBytes ?? Math.max(defaultBufferedBytes, bodyLimit(limits));
}

const bytes = (value: unknown) =>
  Number.isSafeInteger(value) && Number(value) >= 0 ? undefined : "a whole number of bytes";

const atLeastMebibyte = (value: unknown) =>
  Number.isSafeInteger(value) && Number(value) >= 1_048_576
    ? undefined
    : "a whole number of bytes from 1,048,576";

/** What each limit may be; a check returns what would do, where the value does not. */
export const limitChecks = Object.freeze({
  bodyBytes: bytes,
  bufferedBytes: bytes,
  unreadBytes: atLeastMebibyte,
});

/** What is wrong with limits beside one another: a server whose budget no body fits into would take none. */
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
