import { authProblems } from "../../../base/identity/auth-options.ts";
import { signToken } from "../../../base/identity/token.ts";
import { defined } from "../../../base/types/defined.ts";
import {
  type CommandContext,
  defineCommand,
  messageOf,
  options,
  refuse,
  refuseArgument,
  required,
  text,
  textOr,
  type ValuesOf,
} from "../setup/define-command.ts";

const flags = {
  tenant: text("<id>", "the caller's tenant"),
  user: text("<id>", "the caller"),
  roles: { ...text("<names>", "comma-separated roles (default: none)"), default: "" },
  "expires-in-seconds": textOr("86400", "<n>", "how long the token is valid"),
  issuer: text("<text>", "the server's auth.issuer, if it has one"),
  audience: text("<text>", "the server's auth.audience, if it has one"),
} as const;

export const command = defineCommand({
  name: "token",
  usage: `Usage: keelson token --tenant <id> --user <id> [options]

Prints a token for the Authorization header and nothing else.

${options(flags)}

The secret is KEELSON_AUTH_SECRET, or the embedded stack's in .keelson.
Exit codes: 0 printed, 1 there is no usable secret, 2 wrong usage.`,
  flags,
  run: async (values, [unexpected], context) => {
    const given = tokenOptions(values, unexpected);
    const secret = await readSecret(context);
    try {
      context.print(await signToken({ ...given, secret }, context.clock));
      return 0;
    } catch (error) {
      // The secret is valid, so the options are wrong.
      refuse(messageOf(error));
    }
  },
});

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

function tokenOptions(values: ValuesOf<typeof flags>, unexpected: string | undefined) {
  const { roles, issuer, audience, "expires-in-seconds": seconds } = values;
  if (unexpected !== undefined && roles !== "")
    refuse(
      `unexpected argument ${JSON.stringify(unexpected)}; separate roles by commas, without spaces`,
    );
  refuseArgument(unexpected);
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
