// Middy's own types and keelson's, of the same things, in both directions. It is compiled and never run.
import middy from "@middy/core";
import httpErrorHandler from "@middy/http-error-handler";
import httpHeaderNormalizer from "@middy/http-header-normalizer";
import httpJsonBodyParser from "@middy/http-json-body-parser";
import httpSecurityHeaders from "@middy/http-security-headers";
import inputOutputLogger from "@middy/input-output-logger";
import { access, buildServer } from "keelson";
import {
  type HttpApiEvent,
  type LambdaHttpResult,
  lambdaHttp,
  type RestApiEvent,
} from "keelson/lambda";
import { type ExecutionMode, type Middleware, requestScope, writeOnce } from "keelson/middy";

const server = buildServer({ features: [] });

// Types of keelson are accepted in place of Middy's.
export const theirMiddleware: middy.MiddlewareObj = writeOnce();
export const theirMode: NonNullable<middy.PluginObject["executionMode"]> = requestScope(server, {
  handler: "legacy.note.take",
  access: access.everyone,
});
export const adopted = middy({
  executionMode: requestScope(server, { handler: "legacy.note.take", access: access.everyone }),
})
  .use(httpJsonBodyParser())
  .use(writeOnce())
  .use([httpErrorHandler(), writeOnce()])
  .handler(async () => ({ statusCode: 200 }));

// Types of Middy are accepted in place of keelson's.
const own: middy.MiddlewareObj = { before: () => undefined };
export const ourMiddleware: Middleware = own;
export const typed: middy.MiddlewareObj<HttpApiEvent, LambdaHttpResult<HttpApiEvent>> = {
  before: ({ event }) => void event.rawPath,
};
export const ourMode: ExecutionMode = middy.prototype as NonNullable<
  middy.PluginObject["executionMode"]
>;
export const http = lambdaHttp(server)
  .use(own)
  .use(typed)
  .use(httpJsonBodyParser())
  .use([httpHeaderNormalizer(), httpErrorHandler()])
  .use(httpSecurityHeaders())
  .use(inputOutputLogger());
export const rest = lambdaHttp<RestApiEvent>(server)
  .use([httpJsonBodyParser(), own])
  .use(httpErrorHandler());
