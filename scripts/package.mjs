// `npm run package -- --stage prod --shape each`: the archive and the CloudFormation template in .keelson/package.
import { parseArgs } from "node:util";
import { packageOptions, packageSample } from "./package-sample.mjs";

const say = (line) => console.log(`package: ${line}`);
const began = performance.now();
try {
  const { values } = parseArgs({ options: packageOptions });
  await packageSample(values, say);
  say(`${values.package} after ${((performance.now() - began) / 1000).toFixed(1)} s`);
} catch (error) {
  console.error(`package: ${error.message}`);
  process.exitCode = 1;
}
