import { runContainer } from "../../src/container/index.ts";
import { server } from "../contract/every-feature.ts";

await runContainer(server);
