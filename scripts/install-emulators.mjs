// Installs what `npm run test:localstack` and `npm run test:deploy` would install themselves, for `.ci/run`,
// which does it while other tests run.
import { installPackage } from "./install.mjs";
import { prepareLocalStack } from "./localstack/run.mjs";
import { installAwsCli, installMiniStack, installRuntime } from "./package-emulator.mjs";

const say = (line) => console.log(`emulators: ${line}`);
const interruption = new AbortController();
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(name, () => interruption.abort(new Error(`interrupted by ${name}`)));
}

try {
  await prepareLocalStack(say, interruption.signal);
  installMiniStack(say);
  installAwsCli(say);
  installRuntime(say);
  installPackage("test/deploy/tools", say);
} catch (error) {
  console.error(`emulators: ${error.message}`);
  process.exitCode = 1;
}
