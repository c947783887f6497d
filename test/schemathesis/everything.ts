import { runContainer } from "../../src/hosts/container/index.ts";
import { server } from "../contract/every-feature.ts";

await runContainer(server);
