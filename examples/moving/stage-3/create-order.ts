import { lambdaHandler } from "keelson/lambda";
import { orders } from "./orders.ts";
import { server } from "./server.ts";

export const handler = lambdaHandler(server, orders.create);
