export type { Swept } from "../../parts/messages/outbox-store.ts";
export type {
  HttpApiEvent,
  HttpApiResult,
  RestApiEvent,
  RestApiResult,
} from "../lambda-http/api-gateway.ts";
export type { LambdaHttpEvent, LambdaHttpResult } from "../lambda-http/http-events.ts";
export {
  type LambdaHttpHandler,
  type LambdaHttpOptions,
  lambdaHandler,
  lambdaHttp,
} from "../lambda-http/http-handler.ts";
export type {
  ForeignMiddleware,
  Middleware,
  MiddlewareRequest,
  WithMiddlewares,
} from "../lambda-http/lazy-mode.ts";
export type { LoadBalancerEvent, LoadBalancerResult } from "../lambda-http/load-balancer.ts";
export type { FiredSchedules } from "./fire-schedules.ts";
export {
  type LambdaOutboxHandler,
  type LambdaQueueHandler,
  type LambdaScheduleHandler,
  lambdaOutbox,
  lambdaQueue,
  lambdaSchedule,
  lambdaSweep,
} from "./workers.ts";
