// A Web Function: the container, unchanged.
import { runContainer } from "../src/hosts/container/index.ts";
import { server } from "./front-server.ts";

await runContainer(server);
