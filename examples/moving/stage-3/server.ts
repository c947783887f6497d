import { buildServer } from "keelson";
import { auth } from "../stage-1/server.ts";
import { orders } from "./orders.ts";

export const server = buildServer({ features: [orders], auth });
