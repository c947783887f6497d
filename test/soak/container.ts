// A container of the soak, started from the sources in its own process.
import { runContainer } from "../../src/hosts/container/index.ts";
import { createServer } from "./server.ts";

await runContainer(createServer(), { host: "127.0.0.1" });
