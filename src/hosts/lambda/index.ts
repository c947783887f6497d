export type { Swept } from "../../parts/messages/outbox-store.ts";
export type { HttpApiEvent, HttpApiResult } from "../lambda-http/http-api.ts";
export type { LambdaHttpEvent, LambdaHttpResult } from "../lambda-http/http-events.ts";
export { type LambdaHttpHandler, lambdaHandler, lambdaHttp } from "../lambda-http/http-handler.ts";
export type { LoadBalancerEvent, LoadBalancerResult } from "../lambda-http/load-balancer.ts";
export type {
  ForeignMiddleware,
  Middleware,
  MiddlewareRequest,
  WithMiddlewares,
} from "../lambda-http/middleware.ts";
export type { RestApiEvent, RestApiResult } from "../lambda-http/rest-api.ts";
export type { FiredSchedules } from "./fire-schedules.ts";
export { type LambdaQueueHandler, lambdaQueue } from "./queue.ts";
export { type LambdaScheduleHandler, lambdaSchedule } from "./schedule.ts";
export { type LambdaStreamHandler, lambdaStream } from "./stream.ts";
export { lambdaSweep } from "./sweep.ts";
