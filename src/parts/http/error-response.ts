import { type ErrorCode, errorCodes } from "../../base/errors/codes.ts";
import { describeError, type ErrorDescription } from "../../base/errors/describe.ts";
import type { Environment } from "../../base/process/environment.ts";
import type { HttpResponse } from "./message.ts";
import { ownHeaders } from "./own-headers.ts";

/** What the uniform response depends on beside the error. */
export interface ErrorFacts {
  readonly requestId: string;
  readonly environment: Environment;
  /** The request's `accept` header. */
  readonly accept: string | undefined;
  readonly head: boolean;
}

/** Turns an error into the uniform response (specification 2.7), or into problem+json (RFC 9457) where it is asked for. */
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

/** Whether an `accept` header names problem+json, and not with a weight of nought. */
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

/** Where the package's guides can be read: each code of keelson's own has a section of this page. */
const errorPage = "https://unpkg.com/keelson/docs/errors.md";

/** Type and title of a problem: the page of an error of keelson's own, and `about:blank` for those of applications. */
function problemOf(
  code: string,
  status: number,
): { readonly type: string; readonly title: string } {
  const isOwn = Object.hasOwn(errorCodes, code) && errorCodes[code as ErrorCode] === status; // safe: it is one of them
  if (!isOwn) return { type: "about:blank", title: phraseOf(status, code) };
  const words = code.replaceAll("_", " ");
  return { type: `${errorPage}#${code}`, title: words.slice(0, 1).toUpperCase() + words.slice(1) };
}

/**
 * The title that RFC 9457 asks for beside `about:blank`: the status's own phrase. Asked of Node
 * only here, because importing `node:http` costs a function's start more than all the rest.
 */
function phraseOf(status: number, otherwise: string): string {
  return process.getBuiltinModule("node:http").STATUS_CODES[status] ?? otherwise;
}
