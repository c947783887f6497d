export type { Swept } from "../events/outbox.ts";
export type { FiredSchedules } from "./fire-schedules.ts";
export type { HttpApiEvent, HttpApiResult } from "./http-api.ts";
export type { LambdaHttpEvent, LambdaHttpResult } from "./http-event.ts";
export { type LambdaHttpHandler, lambdaHandler, lambdaHttp } from "./http-handler.ts";
export type { LoadBalancerEvent, LoadBalancerResult } from "./load-balancer.ts";
export type {
  ForeignMiddleware,
  Middleware,
  MiddlewareRequest,
  WithMiddlewares,
} from "./middleware.ts";
export { type LambdaQueueHandler, lambdaQueue } from "./queue.ts";
export type { RestApiEvent, RestApiResult } from "./rest-api.ts";
export { type LambdaScheduleHandler, lambdaSchedule } from "./schedule.ts";
export { type LambdaStreamHandler, lambdaStream } from "./stream.ts";
export { lambdaSweep } from "./sweep.ts";
