// Bundles src/lambda.ts into dist/, the content of a Lambda function's archive: its handler is `lambda.http`. With `--front web`, dist/
// also holds a Web Function, which runs src/main.ts.
import { rmSync } from "node:fs";
import { parseArgs } from "node:util";
import { rolldownPlugin } from "keelson/bundle";
import { rolldown } from "rolldown";

const { values } = parseArgs({ options: { front: { type: "string", default: "http" } } });
const input = { lambda: "src/lambda.ts", ...(values.front === "web" && { web: "src/main.ts" }) };
rmSync("dist", { recursive: true, force: true });
const build = await rolldown({ input, plugins: [rolldownPlugin()] });
await build.write({ dir: "dist", sourcemap: "hidden" });
await build.close();
