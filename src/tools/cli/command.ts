import { authProblems } from "../../base/identity/auth-options.ts";
import { signToken, type TokenOptions } from "../../base/identity/token.ts";
import type { CommandContext } from "./setup/command-context.ts";
import {
  defineCommand,
  messageOf,
  type RunCommand,
  required,
  text,
  UsageError,
  type ValuesOf,
} from "./setup/define-command.ts";
import { forTerminal } from "./setup/terminal.ts";

const commands =
  "keelson token, keelson init, keelson key-ring, keelson doctor, keelson infra, keelson openapi, keelson contract, keelson asyncapi, keelson outbox, keelson steps, keelson tenant, keelson projection or keelson trace";

type Load = () => Promise<{ readonly run: RunCommand }>;

/** Commands in the help text's order. Loaded lazily: `keelson token` needs no AWS code. */
const otherCommands: Readonly<Record<string, readonly [summary: string, load: Load]>> = {
  init: ["makes a project", () => import("./commands/init-command.ts")],
  doctor: ["checks what a server needs", () => import("./commands/doctor-command.ts")],
  infra: [
    "writes the CloudFormation template of what a server needs",
    () => import("./commands/infra-command.ts"),
  ],
  openapi: [
    "writes the OpenAPI document of a server",
    () => import("./commands/openapi-command.ts"),
  ],
  contract: [
    "locks what a server promises, and says whom a change breaks",
    () => import("./commands/contract-command.ts"),
  ],
  asyncapi: [
    "writes the AsyncAPI document of a server's events and jobs",
    () => import("./commands/asyncapi-command.ts"),
  ],
  "key-ring": [
    "creates, rotates and lists the keys of encrypted configuration",
    () => import("./commands/key-ring-command.ts"),
  ],
  outbox: [
    "lists, puts back and removes events that the bus refused",
    () => import("./commands/outbox-command.ts"),
  ],
  steps: [
    "lists steps, and says how those ended of which nobody knows",
    () => import("./commands/steps-command.ts"),
  ],
  trace: [
    "prints what became of a request as one tree, and what is stuck",
    () => import("./commands/trace-command.ts"),
  ],
  tenant: ["exports and erases the rows of a tenant", () => import("./commands/tenant-command.ts")],
  projection: [
    "rebuilds projections and tells how they are",
    () => import("./commands/projection-command.ts"),
  ],
};

const usage = `Usage: keelson token --tenant <id> --user <id> [options]

Prints a token for the Authorization header and nothing else.

Options:
  --tenant <id>               the caller's tenant
  --user <id>                 the caller
  --roles <names>             comma-separated roles (default: none)
  --expires-in-seconds <n>    how long the token is valid (default: 86400)
  --issuer <text>             the server's auth.issuer, if it has one
  --audience <text>           the server's auth.audience, if it has one
  --help                      print this text

The secret is KEELSON_AUTH_SECRET, or the embedded stack's in .keelson.

Other commands, each with --help:
${Object.entries(otherCommands)
  .map(([name, [summary]]) => `  keelson ${name.padEnd(20)}${summary}`)
  .join("\n")}`;

const flags = {
  tenant: text,
  user: text,
  roles: { type: "string", default: "" },
  "expires-in-seconds": { type: "string", default: "86400" },
  issuer: text,
  audience: text,
} as const;

const runToken = defineCommand({
  usage,
  flags,
  maxArguments: Number.POSITIVE_INFINITY,
  run: async (values, given, context) => {
    const options = tokenOptions(values, given);
    const secret = await readSecret(context);
    try {
      context.print(await signToken({ ...options, secret }, context.clock));
      return 0;
    } catch (error) {
      // The secret is valid, so the options are wrong.
      context.complain(`keelson: ${messageOf(error)}`);
      return 2;
    }
  },
});

/** Runs `keelson` and returns the exit code: 0, 1 for a failure, 2 for wrong usage. */
export async function runCommand(args: readonly string[], given: CommandContext): Promise<number> {
  const context = forTerminal(given);
  const [name = "", ...others] = args;
  if (!Object.hasOwn(otherCommands, name)) return runToken(args, context);
  const [, load] = otherCommands[name] as readonly [string, Load]; // safe cast: it has the name
  return (await load()).run(others, context);
}

/** An empty variable counts as unset: environment files set unused variables to "". */
async function readSecret({ env, developmentSecret }: CommandContext): Promise<string> {
  const configured = env["KEELSON_AUTH_SECRET"];
  if (!configured) {
    try {
      return await developmentSecret();
    } catch (error) {
      const needed = "KEELSON_AUTH_SECRET is not set, so the development secret is needed";
      throw new Error(`${needed}: ${messageOf(error)}`, { cause: error });
    }
  }
  const wrong = authProblems({ secret: configured })[0];
  if (wrong === undefined) return configured;
  throw new TypeError(`KEELSON_AUTH_SECRET is refused: ${wrong.message}; ${wrong.fix}`);
}

function tokenOptions(
  values: ValuesOf<typeof flags>,
  [command, unexpected]: readonly string[],
): Omit<TokenOptions, "secret"> {
  if (required(command, `no command is given; use ${commands}`) !== "token")
    throw new UsageError(`there is no command ${JSON.stringify(command)}; use ${commands}`);
  if (unexpected !== undefined)
    throw new UsageError(
      `unexpected argument ${JSON.stringify(unexpected)}; separate roles by commas, without spaces`,
    );
  const { issuer, audience } = values;
  return {
    tenantId: idOf("--tenant", values.tenant),
    userId: idOf("--user", values.user),
    roles: values.roles.split(",").flatMap((name) => name.trim() || []),
    expiresInSeconds: wholeSeconds(values["expires-in-seconds"]),
    ...(issuer === undefined ? {} : { issuer }),
    ...(audience === undefined ? {} : { audience }),
  };
}

function idOf(option: string, value: string | undefined): string {
  return required(value || undefined, `${option} is missing; use ${option} <id>`);
}

function wholeSeconds(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new UsageError(
    `--expires-in-seconds ${JSON.stringify(text)} is not a whole number from 1; use --expires-in-seconds 3600`,
  );
}
