import { authProblems } from "../../base/identity/auth-options.ts";
import { signToken } from "../../base/identity/token.ts";
import { visible } from "../../base/log/redaction.ts";
import { defined } from "../../base/types/defined.ts";
import {
  type CommandContext,
  defineCommand,
  listed,
  messageOf,
  options,
  type RunCommand,
  refuse,
  required,
  text,
  textOr,
  type ValuesOf,
} from "./setup/define-command.ts";

const commands =
  "keelson token, keelson init, keelson key-ring, keelson doctor, keelson infra, keelson openapi, keelson contract, keelson asyncapi, keelson outbox, keelson steps, keelson limits, keelson tenant, keelson api-keys, keelson projection or keelson trace";

type Load = () => Promise<{ readonly run: RunCommand }>;

/** Commands in the help text's order. Loaded lazily: `keelson token` runs without AWS code. */
const otherCommands: Readonly<Record<string, readonly [summary: string, load: Load]>> = {
  init: ["creates a project", () => import("./commands/init-command.ts")],
  doctor: ["checks the resources of a server", () => import("./commands/doctor-command.ts")],
  infra: [
    "writes the CloudFormation template of a server",
    () => import("./commands/infra-command.ts"),
  ],
  openapi: [
    "writes the OpenAPI document of a server",
    async () => (await import("./commands/document-command.ts")).openApi,
  ],
  contract: [
    "locks a server's contract, and lists breaking changes",
    () => import("./commands/contract-command.ts"),
  ],
  asyncapi: [
    "writes the AsyncAPI document of a server's events and jobs",
    async () => (await import("./commands/document-command.ts")).asyncApi,
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
    "lists steps, and resolves steps with an unknown outcome",
    () => import("./commands/steps-command.ts"),
  ],
  limits: [
    "shows and resets the callers that rate limits count",
    () => import("./commands/limits-command.ts"),
  ],
  trace: [
    "prints a request and its effects as one tree, and the stuck message",
    () => import("./commands/trace-command.ts"),
  ],
  tenant: ["exports and erases the rows of a tenant", () => import("./commands/tenant-command.ts")],
  "api-keys": [
    "lists and revokes the API keys of a tenant",
    () => import("./commands/api-keys-command.ts"),
  ],
  projection: [
    "rebuilds projections and prints their state",
    () => import("./commands/projection-command.ts"),
  ],
};

const flags = {
  tenant: text("<id>", "the caller's tenant"),
  user: text("<id>", "the caller"),
  roles: { ...text("<names>", "comma-separated roles (default: none)"), default: "" },
  "expires-in-seconds": textOr("86400", "<n>", "how long the token is valid"),
  issuer: text("<text>", "the server's auth.issuer, if it has one"),
  audience: text("<text>", "the server's auth.audience, if it has one"),
} as const;

const summaries = Object.entries(otherCommands).map(([name, [summary]]) => [
  `keelson ${name}`,
  summary,
]);
const token = defineCommand({
  usage: `Usage: keelson token --tenant <id> --user <id> [options]

Prints a token for the Authorization header and nothing else.

${options(flags)}

The secret is KEELSON_AUTH_SECRET, or the embedded stack's in .keelson.

Other commands, each with --help:
${listed(Object.fromEntries(summaries))}`,
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

export async function runCommand(args: readonly string[], given: CommandContext): Promise<number> {
  const context = forTerminal(given);
  const [name = "", ...others] = args;
  if (!Object.hasOwn(otherCommands, name)) return token.run(args, context);
  const [, load] = otherCommands[name] as readonly [string, Load]; // safe cast: it has the name
  return (await load()).run(others, context);
}

/**
 * Escapes control characters in data, which could act on a terminal. The escapes are JSON's, so
 * JSON output stays equivalent.
 */
export function forTerminal(given: CommandContext): CommandContext {
  const { progress, ask, print, complain } = given;
  return {
    ...given,
    print: (line) => print(printable(line)),
    complain: (line) => complain(printable(line)),
    progress: progress && ((text) => progress(visible(text))),
    ask: ask && ((question) => ask(printable(question))),
  };
}

function printable(text: string) {
  return text.replaceAll("\r\n", "\n").replace(/[^\n\t]+/g, visible);
}

/** An empty variable counts as unset: environment files set unused variables to "". */
async function readSecret({ env, developmentSecret }: CommandContext) {
  const configured = env["KEELSON_AUTH_SECRET"];
  if (!configured) {
    try {
      return await developmentSecret();
    } catch (error) {
      const needed = "KEELSON_AUTH_SECRET is not set, so the development secret is needed";
      throw new Error(`${needed}: ${messageOf(error)}`, { cause: error });
    }
  }
  const [wrong] = authProblems({ secret: configured });
  if (wrong === undefined) return configured;
  throw new TypeError(`KEELSON_AUTH_SECRET is refused: ${wrong.message}; ${wrong.fix}`);
}

function tokenOptions(values: ValuesOf<typeof flags>, [command, unexpected]: readonly string[]) {
  if (required(command, `no command is given; use ${commands}`) !== "token")
    refuse(`there is no command ${JSON.stringify(command)}; use ${commands}`);
  if (unexpected !== undefined)
    refuse(
      `unexpected argument ${JSON.stringify(unexpected)}; separate roles by commas, without spaces`,
    );
  const { roles, issuer, audience, "expires-in-seconds": seconds } = values;
  const idOf = (name: "tenant" | "user") =>
    required(values[name] || undefined, `--${name} is missing; use --${name} <id>`);
  const ids = { tenantId: idOf("tenant"), userId: idOf("user") };
  if (!/^[1-9]\d{0,8}$/.test(seconds))
    refuse(
      `--expires-in-seconds ${JSON.stringify(seconds)} is not a whole number from 1; use --expires-in-seconds 3600`,
    );
  return {
    ...ids,
    ...defined({ issuer, audience }),
    roles: roles.split(",").flatMap((name) => name.trim() || []),
    expiresInSeconds: Number(seconds),
  };
}
