import { lambdaHttp } from "keelson/lambda";
import { server } from "./server.ts";

/** Answers every route, for API Gateway, a function URL or a load balancer. */
export const http = lambdaHttp(server);
