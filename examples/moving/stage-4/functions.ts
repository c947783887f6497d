import { lambdaHttp, lambdaOutbox, lambdaQueue, lambdaSweep } from "keelson/lambda";
import { server } from "./server.ts";

export const http = lambdaHttp(server);
export const queue = lambdaQueue(server);
export const stream = lambdaOutbox(server);
export const sweep = lambdaSweep(server);
