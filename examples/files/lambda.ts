import { lambdaHandler, lambdaHttp, lambdaQueue, lambdaSweep } from "keelson/lambda";
import { server } from "./server.ts";

/** One function for all routes. */
export const http = lambdaHttp(server);

/** One function for one handler. */
export const downloadUrl = lambdaHandler(server, "files.file.download-url");

/** Batches of events and jobs, from the queues of either. */
export const queue = lambdaQueue(server);

/** For a schedule: dispatches what other functions have left in the outbox. */
export const sweep = lambdaSweep(server);
