import { lambdaHttp } from "keelson/lambda";
import { build } from "./service.mjs";

export const handler = lambdaHttp(build());
