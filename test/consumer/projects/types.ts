// Code of an application for each entry point. Several compilers compile it; it never runs.
import type { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import {
  access,
  buildServer,
  createTenantConfig,
  defineFeature,
  FrameworkError,
  type Logger,
  NotFoundError,
  reply,
} from "keelson";
import { type ClientLogger, createClientLogger } from "keelson/browser";
import { ClaimLayer, type ClaimLayerOptions } from "keelson/claim-layer";
import { runContainer } from "keelson/container";
import { type EmbeddedStack, startEmbeddedStack } from "keelson/embedded";
import { FetchFailedError, type RetryingFetchOptions, retryingFetch } from "keelson/fetch";
import {
  type HttpApiResult,
  type LambdaHttpHandler,
  lambdaHandler,
  lambdaHttp,
  lambdaOutbox,
  lambdaQueue,
  lambdaSweep,
  type RestApiEvent,
} from "keelson/lambda";
import {
  type AdoptedContext,
  type ExecutionMode,
  type Middleware,
  requestScope,
  writeOnce,
} from "keelson/middy";
import { configHistory, undoConfig } from "keelson/operators";
import { startTestApp, type TestApp } from "keelson/testing";
import { z } from "zod";

/** Compiles only if both types are the same: `any` is the same as nothing but `any`. */
type Same<One, Other> =
  (<T>() => T extends One ? 1 : 2) extends <T>() => T extends Other ? 1 : 2 ? true : false;
const holds = <_Claim extends true>(): void => undefined;

const notes = defineFeature("notes", (r) => {
  const config = r.config({
    keys: { most: createTenantConfig("number", { default: 3, bounds: { min: 1, max: 9 } }) },
  });
  const taken = r.event("note.taken", z.object({ id: z.string() }));
  const copy = r.job("note.copy", {
    input: z.object({ id: z.string() }),
    handler: async (_ctx, { id }) => holds<Same<typeof id, string>>(),
  });
  r.on(taken, {
    name: "copy",
    handler: async (ctx, { payload }) => {
      holds<Same<typeof payload, { id: string }>>();
      await ctx.enqueue(copy, payload, { delaySeconds: 60 });
    },
  });
  const take = r.write("note.take", {
    route: "POST /notes",
    access: access.authenticated,
    input: z.object({ id: z.string() }),
    handler: async (ctx, { id }) => {
      const most = await ctx.config(config.most);
      holds<Same<typeof most, number>>();
      holds<Same<typeof id, string>>();
      holds<Same<typeof ctx.log, Logger>>();
      const client: DynamoDBDocumentClient = ctx.db;
      if (most < 1) throw new NotFoundError("note", id);
      await ctx.publish(taken, { id });
      return reply({ id, client: client !== undefined }, { status: 201 });
    },
  });
  return { config, take };
});
const server = buildServer({ features: [notes] });

export const http: LambdaHttpHandler = lambdaHttp(server).use({
  before: ({ event }) => {
    holds<Same<typeof event.rawPath, string>>();
    return event.rawPath === "/robots.txt" ? { statusCode: 200, body: "" } : undefined;
  },
});
export const rest = lambdaHttp<RestApiEvent>(server).before(({ event }) => void event.httpMethod);
export const one = lambdaHandler(server, notes.take).use([
  { after: ({ response }) => void response?.statusCode },
]);
export const [queue, stream, sweep] = [
  lambdaQueue(server),
  lambdaOutbox(server),
  lambdaSweep(server),
];
export async function answered(event: Parameters<typeof http>[0]): Promise<HttpApiResult> {
  return http(event, {} as Parameters<typeof http>[1]);
}

export const mode: ExecutionMode = requestScope(server, {
  handler: "legacy.note.take",
  access: access.everyone,
});
export const middleware: Middleware = writeOnce({ replay: "encrypted" });
export const adopted = (_event: unknown, { keelson }: AdoptedContext) => keelson.requestId;
const options: ClaimLayerOptions = { tableName: "idempotency", waitMs: 0 };
export const layer = new ClaimLayer(options);

export const operate = [configHistory, undoConfig];
export const start: () => Promise<unknown> = () => runContainer(server, { port: 0 });
export const stack: () => Promise<EmbeddedStack> = () => startEmbeddedStack();
export const app: () => Promise<TestApp> = () => startTestApp(server);
export async function called({ call }: TestApp): Promise<string> {
  const answer = await call(notes.take, { id: "1" });
  holds<Same<typeof answer.id, string>>();
  return answer.id;
}
const fetchOptions: RetryingFetchOptions = {
  attempts: 3,
  onRetry: ({ requestId }) => logger.warn(requestId),
};
export const fetching: typeof fetch = retryingFetch(fetchOptions);
export const failedId = (error: unknown) =>
  error instanceof FetchFailedError ? error.requestId : undefined;

export const logger: ClientLogger = createClientLogger({ url: "/log", token: () => undefined });
export const isUnavailable = (error: unknown) =>
  error instanceof FrameworkError && error.code === "config_unavailable";
// @ts-expect-error -- types are looked at, none of them is `any`
export const wrong: number = lambdaHttp(server);
