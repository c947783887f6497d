import { parseArgs } from "node:util";
import { authProblems } from "../../base/identity/auth-options.ts";
import { signToken, type TokenOptions } from "../../base/identity/token.ts";
import type { CommandContext } from "./setup/command-context.ts";
import { forTerminal } from "./setup/terminal.ts";

const commands =
  "keelson token, keelson init, keelson key-ring, keelson doctor, keelson infra, keelson openapi, keelson contract, keelson asyncapi, keelson outbox, keelson steps, keelson tenant, keelson projection or keelson trace";

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
  keelson init                makes a project
  keelson doctor              checks what a server needs
  keelson infra               writes the CloudFormation template of what a server needs
  keelson openapi             writes the OpenAPI document of a server
  keelson contract            locks what a server promises, and says whom a change breaks
  keelson asyncapi            writes the AsyncAPI document of a server's events and jobs
  keelson key-ring            creates, rotates and lists the keys of encrypted configuration
  keelson outbox              lists, puts back and removes events that the bus refused
  keelson steps               lists steps, and says how those ended of which nobody knows
  keelson trace               prints what became of a request as one tree, and what is stuck
  keelson tenant              exports and erases the rows of a tenant
  keelson projection          rebuilds projections and tells how they are`;

/**
 * Runs the `keelson` command and returns its exit code: 0, 1 if it failed, 2 if its usage was
 * wrong.
 */
export async function runCommand(args: readonly string[], given: CommandContext): Promise<number> {
  const context = forTerminal(given);
  const [first] = args;
  if (first === "key-ring") {
    // Loaded lazily: `keelson token` does not need AWS code.
    const { runKeyRingCommand } = await import("./commands/key-ring-command.ts");
    return runKeyRingCommand(args.slice(1), context);
  }
  if (first === "doctor") {
    const { runDoctorCommand } = await import("./commands/doctor-command.ts");
    return runDoctorCommand(args.slice(1), context);
  }
  if (first === "infra") {
    const { runInfraCommand } = await import("./commands/infra-command.ts");
    return runInfraCommand(args.slice(1), context);
  }
  if (first === "openapi") {
    const { runOpenApiCommand } = await import("./commands/openapi-command.ts");
    return runOpenApiCommand(args.slice(1), context);
  }
  if (first === "contract") {
    const { runContractCommand } = await import("./commands/contract-command.ts");
    return runContractCommand(args.slice(1), context);
  }
  if (first === "asyncapi") {
    const { runAsyncApiCommand } = await import("./commands/asyncapi-command.ts");
    return runAsyncApiCommand(args.slice(1), context);
  }
  if (first === "init") {
    const { runInitCommand } = await import("./commands/init-command.ts");
    return runInitCommand(args.slice(1), context);
  }
  if (first === "outbox") {
    const { runOutboxCommand } = await import("./commands/outbox-command.ts");
    return runOutboxCommand(args.slice(1), context);
  }
  if (first === "steps") {
    const { runStepsCommand } = await import("./commands/steps-command.ts");
    return runStepsCommand(args.slice(1), context);
  }
  if (first === "tenant") {
    const { runTenantCommand } = await import("./commands/tenant-command.ts");
    return runTenantCommand(args.slice(1), context);
  }
  if (first === "projection") {
    const { runProjectionCommand } = await import("./commands/projection-command.ts");
    return runProjectionCommand(args.slice(1), context);
  }
  if (first === "trace") {
    const { runTraceCommand } = await import("./commands/trace-command.ts");
    return runTraceCommand(args.slice(1), context);
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
