import { lambdaHandler, lambdaHttp } from "keelson/lambda";
import { server } from "./server.ts";

/** One function for all routes. */
export const http = lambdaHttp(server);

/** One function for one handler. */
export const downloadUrl = lambdaHandler(server, "files.file.download-url");
