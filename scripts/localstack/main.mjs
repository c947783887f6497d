// `npm run localstack`: a LocalStack until Ctrl-C. `npm run test:localstack`: the contract suites
// against one; arguments after `--` are passed to vitest.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { getLocalStack } from "./run.mjs";

const help = `npm run localstack [-- --port <port>] [-- --host]
npm run test:localstack [-- --host] [-- <arguments of vitest>]

Uses, in this order:
  1. the LocalStack that LOCALSTACK_ENDPOINT or AWS_ENDPOINT_URL names
  2. a container, where docker answers (not with --host)
  3. LocalStack in host mode, installed under .keelson/localstack:
     needs python3 of at least 3.11, java of at least 17, and mvn

  --port <port>  where it listens on 127.0.0.1; a free one otherwise
  --host         host mode even where docker answers
  --help         this text`;

const [mode, ...rest] = process.argv.slice(2);
const { flags, others } = parse(rest);
const say = (line) => console.log(`localstack: ${line}`);
const interruption = new AbortController();
const interrupted = new Promise((resolve) => {
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(name, () => {
      interruption.abort(new Error(`interrupted by ${name}`));
      resolve(name);
    });
  }
});

if (flags.help) console.log(help);
else {
  try {
    process.exitCode = await (mode === "test" ? test() : serve());
  } catch (error) {
    console.error(`localstack: ${error.message}`);
    process.exitCode = 1;
  }
}

async function serve() {
  if (others.length > 0) throw new Error(`unknown argument ${others[0]}; see --help`);
  const localStack = await getLocalStack({ ...flags, signal: interruption.signal }, say);
  say("in another shell:");
  console.log(
    `export AWS_ENDPOINT_URL=${localStack.endpoint} AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test`,
  );
  say("Ctrl-C stops it");
  const keepAlive = setInterval(() => {}, 60_000); // a given LocalStack has no process that would
  const why = await Promise.race([localStack.stopped, interrupted]);
  clearInterval(keepAlive);
  await localStack.stop();
  say(`stopped (${why})`);
  return why.startsWith("SIG") ? 0 : 1;
}

async function test() {
  const began = performance.now();
  const localStack = await getLocalStack({ ...flags, signal: interruption.signal }, say);
  try {
    const vitest = join(
      dirname(createRequire(import.meta.url).resolve("vitest/package.json")),
      "vitest.mjs",
    );
    const child = spawn(
      process.execPath,
      [vitest, "run", "--config", "vitest.localstack.config.ts", ...others],
      {
        stdio: "inherit",
        env: { ...process.env, LOCALSTACK_ENDPOINT: localStack.endpoint },
      },
    );
    const ended = new Promise((resolve) => child.once("exit", (code) => resolve(code ?? 1)));
    const outcome = await Promise.race([ended, interrupted]);
    if (typeof outcome === "string") child.kill();
    return await ended;
  } finally {
    await localStack.stop();
    say(
      `done in ${((performance.now() - began) / 1000).toFixed(1)} s, with installation and start`,
    );
  }
}

function parse(args) {
  const flags = {};
  const others = [];
  for (let at = 0; at < args.length; at += 1) {
    if (args[at] === "--help") flags.help = true;
    else if (args[at] === "--host") flags.host = true;
    else if (args[at] === "--port") {
      at += 1;
      flags.port = Number(args[at]);
      if (!Number.isInteger(flags.port) || flags.port < 1 || flags.port > 65_535) {
        console.error(`localstack: --port ${args[at]} is not a port`);
        process.exit(1);
      }
    } else others.push(args[at]);
  }
  return { flags, others };
}
