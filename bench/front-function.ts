import { lambdaHttp } from "../src/hosts/lambda/index.ts";
import { server } from "./front-server.ts";

/** The function behind an HTTP API, which does not stream. */
export const whole = lambdaHttp(server);

/** The function behind a REST API or a function URL. */
export const streaming = lambdaHttp(server, { stream: true });
