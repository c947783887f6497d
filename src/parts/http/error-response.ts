import { describeError, type ErrorDescription } from "../../base/errors/describe.ts";
import { type ErrorCode, errorCodes } from "../../base/errors/error-codes.ts";
import type { Environment } from "../../base/process/environment.ts";
import type { HttpResponse } from "./message.ts";
import { ownHeaders } from "./own-headers.ts";

export interface ErrorFacts {
  readonly requestId: string;
  readonly environment: Environment;
  readonly accept: string | undefined;
  readonly head: boolean;
}

/** Returns the uniform response (specification 2.7), or problem+json (RFC 9457) if requested. */
export function errorResponse(
  error: unknown,
  { requestId, environment, accept, head }: ErrorFacts,
): { response: HttpResponse; log: ErrorDescription["log"] } {
  const { status, headers: extra, body, log } = describeError(error, { requestId, environment });
  const isProblem = wantsProblem(accept);
  const text = JSON.stringify(
    isProblem ? { ...problemOf(body.error, status), status, detail: body.message, ...body } : body,
  );
  const headers = {
    ...Object.fromEntries(Object.entries(extra).filter(([name]) => !ownHeaders.includes(name))),
    "content-type": isProblem ? "application/problem+json" : "application/json; charset=utf-8",
    "content-length": String(Buffer.byteLength(text)),
    vary: extra["vary"] === undefined ? "Accept" : `Accept, ${extra["vary"]}`,
  };
  return { response: { status, headers, cookies: [], body: head ? undefined : text }, log };
}

function wantsProblem(accept = ""): boolean {
  return accept
    .toLowerCase()
    .split(",")
    .some((range) => {
      const [type = "", ...parameters] = range.split(";");
      return (
        type.trim() === "application/problem+json" &&
        !parameters.some((parameter) => /^\s*q\s*=\s*0(\.0*)?\s*$/.test(parameter))
      );
    });
}

const errorPage = "https://unpkg.com/keelson/docs/errors.md";

/** An application's error has the type `about:blank` and the phrase of its status (RFC 9457). */
function problemOf(code: string, status: number) {
  const isOwn = Object.hasOwn(errorCodes, code) && errorCodes[code as ErrorCode] === status; // safe: `hasOwn` checked the name
  if (!isOwn) return { type: "about:blank", title: phraseOf(status, code) };
  const words = code.replaceAll("_", " ");
  return { type: `${errorPage}#${code}`, title: words.slice(0, 1).toUpperCase() + words.slice(1) };
}

/** Importing `node:http` costs more than everything else at a function's start together. */
function phraseOf(status: number, otherwise: string): string {
  return process.getBuiltinModule("node:http").STATUS_CODES[status] ?? otherwise;
}
