import { runContainer } from "keelson/container";
import { build } from "./service.mjs";

await runContainer(build(), { port: 0 });
