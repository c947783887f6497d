// `npm run start:localstack`: the packaged stack in a LocalStack, and the sample's container on it, configured only by its environment.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { deployToLocalStack } from "./deploy-localstack.mjs";
import { getLocalStack } from "./localstack/run.mjs";
import { packageDirectory, packageSample } from "./package-sample.mjs";

const root = join(import.meta.dirname, "..");
const say = (line) => console.log(`localstack: ${line}`);
const interruption = new AbortController();
let container;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    interruption.abort(new Error(`interrupted by ${signal}`));
    // A terminal has sent SIGINT to it as well; the container takes the two for one.
    container?.kill(signal);
  });
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(`localstack: ${error.message}`);
  process.exitCode = 1;
}

async function main() {
  const stage = "dev";
  const { template } = await packageSample(
    { stage, shape: "one", param: [], package: packageDirectory },
    () => {},
  );
  interruption.signal.throwIfAborted();
  const localStack = await getLocalStack({ signal: interruption.signal }, say);
  try {
    const variables = await deployToLocalStack(localStack.endpoint, { stage, file: template }, say);
    interruption.signal.throwIfAborted();
    container = spawn(process.execPath, [join(root, "examples", "files", "main.ts")], {
      cwd: root,
      stdio: "inherit",
      // Not in production, so that `npm run token` makes tokens with the secret of the development.
      env: { LOG_FORMAT: "pretty", ...process.env, ...variables, NODE_ENV: "development" },
    });
    const ended = new Promise((resolve) => container.once("exit", (code) => resolve(code ?? 1)));
    const first = await Promise.race([ended, localStack.stopped]);
    if (typeof first === "number") return first;
    say(`LocalStack is gone: ${first}`);
    container.kill("SIGTERM");
    await ended;
    return 1;
  } finally {
    await localStack.stop();
  }
}
