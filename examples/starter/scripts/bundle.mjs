// Bundles src/lambda.ts into dist/, what a Lambda function's archive holds: its handler is `lambda.http`.
import { rmSync } from "node:fs";
import { rolldown } from "rolldown";

rmSync("dist", { recursive: true, force: true });
const build = await rolldown({ input: { lambda: "src/lambda.ts" }, platform: "node" });
await build.write({ dir: "dist", entryFileNames: "[name].mjs", chunkFileNames: "[name]-[hash].mjs", minify: true });
await build.close();
