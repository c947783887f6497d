import { parseArgs } from "node:util";
import { authProblems } from "../../base/identity/auth-options.ts";
import { signToken, type TokenOptions } from "../../base/identity/token.ts";
import type { CommandContext } from "./setup/command-context.ts";
import { forTerminal } from "./setup/terminal.ts";

const commands =
  "keelson token, keelson init, keelson key-ring, keelson doctor, keelson infra, keelson openapi, keelson contract, keelson asyncapi, keelson outbox, keelson steps, keelson tenant, keelson projection or keelson trace";

/** Command beside `keelson token`, in the order of the help text. */
interface OtherCommand {
  readonly name: string;
  readonly summary: string;
  /** Loads the command: `keelson token` does not need AWS code. */
  readonly load: () => Promise<typeof runCommand>;
}

const otherCommands: readonly OtherCommand[] = [
  {
    name: "init",
    summary: "makes a project",
    load: async () => (await import("./commands/init-command.ts")).runInitCommand,
  },
  {
    name: "doctor",
    summary: "checks what a server needs",
    load: async () => (await import("./commands/doctor-command.ts")).runDoctorCommand,
  },
  {
    name: "infra",
    summary: "writes the CloudFormation template of what a server needs",
    load: async () => (await import("./commands/infra-command.ts")).runInfraCommand,
  },
  {
    name: "openapi",
    summary: "writes the OpenAPI document of a server",
    load: async () => (await import("./commands/openapi-command.ts")).runOpenApiCommand,
  },
  {
    name: "contract",
    summary: "locks what a server promises, and says whom a change breaks",
    load: async () => (await import("./commands/contract-command.ts")).runContractCommand,
  },
  {
    name: "asyncapi",
    summary: "writes the AsyncAPI document of a server's events and jobs",
    load: async () => (await import("./commands/asyncapi-command.ts")).runAsyncApiCommand,
  },
  {
    name: "key-ring",
    summary: "creates, rotates and lists the keys of encrypted configuration",
    load: async () => (await import("./commands/key-ring-command.ts")).runKeyRingCommand,
  },
  {
    name: "outbox",
    summary: "lists, puts back and removes events that the bus refused",
    load: async () => (await import("./commands/outbox-command.ts")).runOutboxCommand,
  },
  {
    name: "steps",
    summary: "lists steps, and says how those ended of which nobody knows",
    load: async () => (await import("./commands/steps-command.ts")).runStepsCommand,
  },
  {
    name: "trace",
    summary: "prints what became of a request as one tree, and what is stuck",
    load: async () => (await import("./commands/trace-command.ts")).runTraceCommand,
  },
  {
    name: "tenant",
    summary: "exports and erases the rows of a tenant",
    load: async () => (await import("./commands/tenant-command.ts")).runTenantCommand,
  },
  {
    name: "projection",
    summary: "rebuilds projections and tells how they are",
    load: async () => (await import("./commands/projection-command.ts")).runProjectionCommand,
  },
];

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
${otherCommands.map(({ name, summary }) => `  keelson ${name.padEnd(20)}${summary}`).join("\n")}`;

/**
 * Runs the `keelson` command and returns its exit code: 0, 1 if it failed, 2 if its usage was
 * wrong.
 */
export async function runCommand(args: readonly string[], given: CommandContext): Promise<number> {
  const context = forTerminal(given);
  const [first] = args;
  const other = otherCommands.find(({ name }) => name === first);
  if (other !== undefined) {
    const run = await other.load();
    return run(args.slice(1), context);
  }
  let options: Omit<TokenOptions, "secret"> | undefined;
  try {
    options = parseCommand(args);
  } catch (error) {
    context.complain(`keelson: ${messageOf(error)}\n\n${usage}`);
    return 2;
  }
  if (options === undefined) {
    context.print(usage);
    return 0;
  }
  let secret: string;
  try {
    secret = await readSecret(context);
  } catch (error) {
    context.complain(`keelson: ${messageOf(error)}`);
    return 1;
  }
  try {
    context.print(await signToken({ ...options, secret }, context.clock));
    return 0;
  } catch (error) {
    // The secret is valid, so the options are wrong.
    context.complain(`keelson: ${messageOf(error)}`);
    return 2;
  }
}

/**
 * Returns KEELSON_AUTH_SECRET, or the development secret if it is unset or empty. Environment files
 * set unused variables to an empty string.
 */
async function readSecret({ env, developmentSecret }: CommandContext): Promise<string> {
  const configured = env["KEELSON_AUTH_SECRET"];
  if (!configured) {
    try {
      return await developmentSecret();
    } catch (error) {
      throw new Error(
        `KEELSON_AUTH_SECRET is not set, so the development secret is needed: ${messageOf(error)}`,
        {
          cause: error,
        },
      );
    }
  }
  const wrong = authProblems({ secret: configured })[0];
  if (wrong === undefined) return configured;
  throw new TypeError(`KEELSON_AUTH_SECRET is refused: ${wrong.message}; ${wrong.fix}`);
}

/** Parses the options of `keelson token`; `undefined` for `--help`. */
function parseCommand(args: readonly string[]): Omit<TokenOptions, "secret"> | undefined {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      tenant: { type: "string" },
      user: { type: "string" },
      roles: { type: "string", default: "" },
      "expires-in-seconds": { type: "string", default: "86400" },
      issuer: { type: "string" },
      audience: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return undefined;
  const [command, ...more] = positionals;
  if (command === undefined) throw new TypeError(`no command is given; use ${commands}`);
  if (command !== "token")
    throw new TypeError(`there is no command ${JSON.stringify(command)}; use ${commands}`);
  if (more.length > 0)
    throw new TypeError(
      `unexpected argument ${JSON.stringify(more[0])}; separate roles by commas, without spaces`,
    );
  const { issuer, audience } = values;
  return {
    tenantId: required("--tenant", values.tenant),
    userId: required("--user", values.user),
    roles: values.roles.split(",").flatMap((name) => name.trim() || []),
    expiresInSeconds: wholeSeconds(values["expires-in-seconds"]),
    ...(issuer === undefined ? {} : { issuer }),
    ...(audience === undefined ? {} : { audience }),
  };
}

function required(option: string, value: string | undefined): string {
  if (value === undefined || value === "")
    throw new TypeError(`${option} is missing; use ${option} <id>`);
  return value;
}

function wholeSeconds(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new TypeError(
    `--expires-in-seconds ${JSON.stringify(text)} is not a whole number from 1; use --expires-in-seconds 3600`,
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
