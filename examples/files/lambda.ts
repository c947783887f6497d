import {
  lambdaHandler,
  lambdaHttp,
  lambdaOutbox,
  lambdaQueue,
  lambdaSchedule,
  lambdaSweep,
} from "keelson/lambda";
import { server } from "./server.ts";

/** One function for all routes. */
export const http = lambdaHttp(server);

/** Or one function for each handler, with the names that `keelson infra --shape each` uses, and separate permissions. */
export const filesFileCreate = lambdaHandler(server, "files.file.create");
export const filesFileList = lambdaHandler(server, "files.file.list");
export const filesFileQuota = lambdaHandler(server, "files.file.quota");
export const filesFileShow = lambdaHandler(server, "files.file.show");
export const filesFileDownloadUrl = lambdaHandler(server, "files.file.download-url");
export const filesFileDelete = lambdaHandler(server, "files.file.delete");
export const billingPaymentReceived = lambdaHandler(server, "billing.payment.received");

/** Batches of events and jobs, from the queues of either. */
export const queue = lambdaQueue(server);

/** The stream of the outbox: immediately dispatches messages that other functions have left in it. */
export const stream = lambdaOutbox(server);

/** For a rule of one minute: dispatches messages that the stream has given up on, and jobs that are due. */
export const sweep = lambdaSweep(server);

/** For a rule of one minute: runs the schedules that are due. */
export const schedule = lambdaSchedule(server);
