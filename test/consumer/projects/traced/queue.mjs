import { lambdaQueue } from "keelson/lambda";
import { build } from "./service.mjs";

export const handler = lambdaQueue(build());
