import { lambdaHttp, lambdaOutbox, lambdaQueue, lambdaSweep } from "keelson/lambda";
import { server } from "./server.ts";

/** Answers every route, for API Gateway, a function URL or a load balancer. */
export const http = lambdaHttp(server);

/** Runs consumers and jobs. */
export const queue = lambdaQueue(server);

/** Sends events right after their commit. */
export const stream = lambdaOutbox(server);

/** Sends jobs that are due and events that are late, once a minute. */
export const sweep = lambdaSweep(server);
