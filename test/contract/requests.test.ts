import fc from "fast-check";
import type { Server } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { server as sample } from "../../examples/files/server.ts";
import type { JsonSchema } from "../../src/app/openapi/schema.ts";
import { serverDocument } from "../../src/app/routes/openapi-document.ts";
import { serverInternals } from "../../src/app/server/server.ts";
import { schemaCheck } from "../support/held/disagreement.ts";
import { runs } from "../support/runs.ts";
import { server as everything } from "./every-feature.ts";
import {
  allowedRequests,
  type GeneratedRequest,
  type Operation,
  operationsOf,
} from "./generated.ts";

/** What a request is answered with that has not the shape that the operation asks for. */
const ofShape: readonly unknown[] = [
  "malformed_request",
  "idempotency_key_required",
  "payload_too_large",
  "unsupported_media_type",
  "validation_error",
];

const caller = { id: "ann", tenantId: "acme", roles: ["systemAdmin", "admin", "editor", "reader"] };

describe.each([
  ["the sample", sample],
  ["an application with every feature", everything],
])("the document of %s", (_, server) => {
  let app: TestApp;
  let document: JsonSchema;
  let operations: readonly Operation[];
  beforeAll(async () => {
    ({ document } = await serverDocument(serverInternals(server)));
    operations = operationsOf(document);
    app = await startTestApp(server);
  });
  afterAll(() => app.close());

  const requests = () =>
    fc
      .constantFrom(...operations)
      .chain((operation) =>
        allowedRequests(operation, document).map((request) => ({ operation, request })),
      );

  test("allows no request whose shape the server refuses", async () => {
    await fc.assert(
      fc.asyncProperty(requests(), async ({ operation, request }) => {
        const { status, error, body } = await send(app, server, operation, request);
        if (isOfState(operation, error, body)) return;
        expect(ofShape.includes(error), `${operation.operationId}: ${status} ${body}`).toBe(false);
      }),
      { numRuns: runs(1_000), endOnFailure: true },
    );
  });

  test("forbids only requests that the server refuses", async () => {
    const forbidden = requests().chain(({ operation, request }) => {
      const ways = forbiddenOf(operation, request, document);
      return ways.length === 0
        ? fc.constant(undefined)
        : fc.constantFrom(...ways).map((way) => ({ operation, ...way }));
    });
    const tried = new Set<string>();
    await fc.assert(
      fc.asyncProperty(forbidden, async (given) => {
        if (given === undefined) return;
        const { operation, request, what, type } = given;
        const { status, error, body } = await send(app, server, operation, request, type);
        tried.add(what);
        // The signature of a webhook covers the body, so it is checked first.
        expect(
          ofShape.includes(error) || error === "signature_invalid",
          `${operation.operationId}, ${what}: ${status} ${body}`,
        ).toBe(true);
      }),
      { numRuns: runs(1_000), endOnFailure: true },
    );
    expect(tried.size).toBeGreaterThan(1);
  });
});

/** Operations that refuse values by more than their schemas: by what a configuration key takes, or has as a tenant's limit. */
const asksConfiguration = /^(?:keelson\.config\.|files\.file\.)/;
/** What the operators' API says of a field that is wrong whatever the key is. */
const whateverTheKey = /is not an ID|must be (?:a text|a time|a whole number|from 1|system)/;

function isOfState({ operationId }: Operation, error: unknown, body: string): boolean {
  return (
    asksConfiguration.test(operationId) &&
    error === "validation_error" &&
    !whateverTheKey.test(body)
  );
}

let keys = 0;

async function send(
  app: TestApp,
  server: Server,
  operation: Operation,
  request: GeneratedRequest,
  type = operation.body?.type,
) {
  const { options, registry } = serverInternals(server);
  const { basePath = "" } = options;
  // A key that nobody declares is not found, whatever is said of it.
  const [key] = registry.configKeys.keys();
  const given: Readonly<Record<string, unknown>> = operation.operationId.startsWith(
    "keelson.config.",
  )
    ? { key }
    : request.path;
  const path = operation.path.replaceAll(/\{([^}]+)\}/g, (_whole, name: string) =>
    encodeURIComponent(String(given[name])),
  );
  const query = formOf(request.query);
  const headers = Object.fromEntries(
    Object.entries(request.header).map(([name, value]) => [name, String(value)]),
  );
  // A key that was used for another request is a conflict of the two.
  if (headers["Idempotency-Key"] !== undefined) headers["Idempotency-Key"] = `${keys++}`;
  const response = await app.fetch(`${basePath}${path}${query === "" ? "" : `?${query}`}`, {
    method: operation.method,
    as: caller,
    headers: {
      ...headers,
      ...(request.body === undefined || type === undefined ? {} : { "content-type": type }),
    },
    ...(request.body === undefined ? {} : { body: written(request.body, operation.body?.type) }),
  });
  const body = await response.text();
  const isError =
    response.status >= 400 && response.headers.get("content-type")?.startsWith("application/json");
  return {
    status: response.status,
    error: isError === true ? JSON.parse(body).error : undefined,
    body,
  };
}

function written(body: unknown, type: string | undefined): string | Uint8Array {
  if (type === "application/json") return JSON.stringify(body);
  if (type === "application/x-www-form-urlencoded") return formOf(body as Record<string, unknown>); // safe: a form is an object
  return type === "text/plain" ? String(body) : new TextEncoder().encode(String(body));
}

function formOf(fields: Readonly<Record<string, unknown>>): string {
  const pairs = Object.entries(fields).flatMap(([name, value]) =>
    [value].flat().map((one): [string, string] => [name, String(one)]),
  );
  return new URLSearchParams(pairs).toString();
}

interface Forbidden {
  readonly what: string;
  readonly request: GeneratedRequest;
  readonly type?: string;
}

/** A request with one thing that the document forbids, for each such thing. */
function forbiddenOf(
  { parameters, body }: Operation,
  request: GeneratedRequest,
  document: JsonSchema,
): Forbidden[] {
  const found: Forbidden[] = [];
  for (const { in: place, name, required, schema } of parameters) {
    const { [name]: _left, ...others } = request[place];
    if (place !== "path" && required === true)
      found.push({ what: `no ${place}`, request: { ...request, [place]: others } });
    for (const text of place === "query" ? texts : []) {
      // A parameter is a text, which stands for a number where one is asked for.
      const isAllowed = [text, Number(text)].some(
        (value) => schemaCheck(value, schema, document) === undefined,
      );
      if (!isAllowed) {
        found.push({
          what: `another ${place}`,
          request: { ...request, [place]: { ...others, [name]: text } },
        });
      }
    }
  }
  if (body === undefined || request.body === undefined) return found;
  if (body.type !== "application/octet-stream" && body.type !== "text/plain") {
    found.push({ what: "another content type", request, type: "application/x-unknown" });
  }
  if (body.type === "application/json") {
    for (const other of [["text"], [], "text", 7, null]) {
      if (schemaCheck(other, body.schema, document) !== undefined)
        found.push({ what: "another kind of value", request: { ...request, body: other } });
    }
  }
  for (const changed of changesOf(request.body, body.type === "application/json")) {
    if (schemaCheck(changed, body.schema, document) !== undefined)
      found.push({ what: "another body", request: { ...request, body: changed } });
  }
  return found;
}

const texts = ["no one's word", "-1", "1e9", "x".repeat(3_000), "\u0085"];

/** A value with one member less, or with another in its place. */
function changesOf(value: unknown, isJson: boolean): unknown[] {
  if (typeof value === "string") return isJson ? [7, {}, null] : [value.repeat(2_000)];
  if (typeof value !== "object" || value === null) return isJson ? ["text", {}, -1, null] : [];
  if (Array.isArray(value))
    return [
      ...(isJson ? ["text"] : []),
      ...value.flatMap((one, at) => changesOf(one, isJson).map((other) => value.with(at, other))),
    ];
  return Object.entries(value).flatMap(([name, member]) => {
    const { [name]: _left, ...others } = value as Record<string, unknown>; // safe: it is an object
    return [others, ...changesOf(member, isJson).map((other) => ({ ...others, [name]: other }))];
  });
}
