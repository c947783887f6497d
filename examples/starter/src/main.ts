import { runContainer } from "keelson/container";
import { server } from "./server.ts";

await runContainer(server);
