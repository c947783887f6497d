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

/** Or one function for each handler, named as `keelson infra --shape each` calls it: each with permissions of its own. */
export const filesFileCreate = lambdaHandler(server, "files.file.create");
export const filesFileList = lambdaHandler(server, "files.file.list");
export const filesFileQuota = lambdaHandler(server, "files.file.quota");
export const filesFileShow = lambdaHandler(server, "files.file.show");
export const filesFileDownloadUrl = lambdaHandler(server, "files.file.download-url");
export const filesFileDelete = lambdaHandler(server, "files.file.delete");

/** Batches of events and jobs, from the queues of either. */
export const queue = lambdaQueue(server);

/** The stream of the outbox: dispatches at once what other functions have left in it. */
export const stream = lambdaOutbox(server);

/** For a rule of one minute: dispatches what the stream has given up, and jobs that are due. */
export const sweep = lambdaSweep(server);

/** For a rule of one minute: runs the schedules that are due. */
export const schedule = lambdaSchedule(server);
