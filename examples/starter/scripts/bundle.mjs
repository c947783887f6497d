// Bundles src/lambda.ts into dist/, what a Lambda function's archive holds: its handler is `lambda.http`.
import { rmSync } from "node:fs";
import { rolldownPlugin } from "keelson/bundle";
import { rolldown } from "rolldown";

rmSync("dist", { recursive: true, force: true });
const build = await rolldown({ input: { lambda: "src/lambda.ts" }, plugins: [rolldownPlugin()] });
await build.write({ dir: "dist", sourcemap: "hidden" });
await build.close();
