import { runContainer } from "keelson/container";
import { createServer, server } from "./server.ts";

const isDevelopment = process.env["NODE_ENV"] === "development";
await runContainer(
  isDevelopment ? createServer((await import("./reference.ts")).reference) : server,
);
