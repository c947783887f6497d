import { retryingFetch } from "keelson/fetch";
import createClient from "openapi-fetch";
import { expectTypeOf, test } from "vitest";
import type { paths } from "../fixtures/files-api.d.ts";

const client = createClient<paths>({ baseUrl: "https://api.example.com", fetch: retryingFetch() });

test("a call has the input and the answer of its operation", async () => {
  const { data } = await client.POST("/files", { body: { name: "a.txt", sizeMb: 1 } });
  const list = await client.GET("/files", { params: { query: { limit: 10 } } });

  expectTypeOf(data).toEqualTypeOf<{ id: string; name: string; sizeMb: number } | undefined>();
  expectTypeOf(list.data?.cursor).toEqualTypeOf<string | undefined>();
});

test("what the operation does not take is refused", () => {
  // @ts-expect-error there is no such path
  void client.GET("/folders");
  // @ts-expect-error it has another method
  void client.PUT("/files", {});
  // @ts-expect-error the size is missing
  void client.POST("/files", { body: { name: "a.txt" } });
  // @ts-expect-error the ID is missing
  void client.GET("/files/{id}", {});
  // @ts-expect-error a limit is a number
  void client.GET("/files", { params: { query: { limit: "10" } } });
});

test("an error has one of the operation's codes", async () => {
  const { data, error, response } = await client.GET("/files/{id}", {
    params: { path: { id: "7" } },
  });

  if (error?.error === "not_found") expectTypeOf(error.requestId).toEqualTypeOf<string>();
  if (error?.error === "validation_error")
    expectTypeOf(error.fields?.[0]?.field).toEqualTypeOf<string | undefined>();
  // @ts-expect-error a read is never in progress
  if (error?.error === "request_in_progress") expectTypeOf(response.status).toEqualTypeOf<number>();
  if (error === undefined)
    expectTypeOf(data).toEqualTypeOf<{ id: string; name: string; sizeMb: number }>();
  else expectTypeOf(data).toEqualTypeOf<undefined>();
});

test("all codes of an operation can be distinguished", async () => {
  const { error } = await client.DELETE("/files/{id}", { params: { path: { id: "7" } } });
  if (error === undefined) return;

  switch (error.error) {
    case "request_in_progress":
    case "unknown_outcome":
    case "idempotency_key_reused":
    case "access_denied":
    case "config_unavailable":
    case "internal_error":
    case "isolation_unavailable":
    case "maintenance":
    case "malformed_request":
    case "not_found":
    case "overloaded":
    case "payload_too_large":
    case "pipeline_error":
    case "quota_exceeded":
    case "response_mismatch":
    case "response_too_large":
    case "tenant_suspended":
    case "timeout":
    case "unauthenticated":
    case "unsupported_media_type":
    case "validation_error":
      break;
    default:
      expectTypeOf(error).toBeNever();
  }
});

test("a retrying fetch is a fetch", () => {
  expectTypeOf(retryingFetch()).toEqualTypeOf<typeof fetch>();
  expectTypeOf(retryingFetch).toBeCallableWith({
    fetch,
    attempts: 3,
    attemptMs: 1_000,
    totalMs: 10_000,
    onRetry: () => {},
  });
});
