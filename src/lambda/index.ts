export type { HttpApiEvent, HttpApiResult } from "./http-api.ts";
export { type LambdaHttpHandler, lambdaHandler, lambdaHttp } from "./http-handler.ts";
