import { runContainer } from "keelson/container";
import { server } from "../stage-4/server.ts";

await runContainer(server);
