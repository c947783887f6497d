import { parseArgs } from "node:util";
import { accountOf, endpointOf } from "../../../aws/adapters/adapters.ts";
import { openKeyRingParameter } from "../../../aws/clients/key-ring-parameter.ts";
import { isTypedError } from "../../../base/errors/errors.ts";
import type { CommandContext } from "../setup/command-context.ts";
import { onItsStack } from "../setup/embedded-stack.ts";
import { type KeyRingAction, type KeyRingCall, keyRingActions } from "./key-ring-actions.ts";

export const keyRingUsage = `Usage: keelson key-ring <action> --parameter <name> [options]

Manages the key ring, a SecureString in SSM. It never prints a key.

Actions, in the order of a rotation:
  create                      creates the parameter with one key
  add                         adds a key, which only decrypts until it is activated
  activate --key <name>       encrypts with this key from now on
  rotate                      encrypts all stored secrets again with the active key
  remove --key <name>         removes a key that no stored secret needs; messages that it
                              signed can still be verified for 379 days
  forget --key <name>         ends that too, for a leaked key
  list                        prints the names of the keys

activate and rotate wait up to 15 s until running servers know the last change; remove has to
come at least five minutes after it. Run one action at a time: SSM does not lock parameters.

Options:
  --parameter <name>          the SSM parameter: keyRing.parameter of buildServer
  --key <name>                the key (default for create and add: today's date)
  --kms-key <id>              for create: the KMS key that encrypts the parameter (default: alias/aws/ssm)
  --prefix <text>             the server's dynamodb.prefix (default: keelson); repeat it for each server that uses the ring
  --bind-version              for rotate: binds secrets to their row's version, like keyRing.bindVersion of the server
  --help                      print this text

Region, credentials, endpoints and KEELSON_TABLE_CONFIG come from the environment.`;

class UsageError extends Error {}

/**
 * Runs `keelson key-ring` and returns its exit code: 0, 1 if it failed, 2 if its usage was wrong.
 */
export async function runKeyRingCommand(
  args: readonly string[],
  context: CommandContext,
): Promise<number> {
  try {
    const call = parseCall(args);
    if (call === undefined) {
      context.print(keyRingUsage);
      return 0;
    }
    await onItsStack(context, undefined, (there) => act(call, there));
    return 0;
  } catch (error) {
    const message = messageOf(error);
    if (error instanceof UsageError) {
      context.complain(`keelson: ${message}\n\n${keyRingUsage}`);
      return 2;
    }
    context.complain(`keelson: ${message}`);
    return 1;
  }
}

async function act(
  call: KeyRingCall & { readonly action: KeyRingAction },
  context: CommandContext,
): Promise<void> {
  const options = { endpoint: endpointOf(context.env, "SSM"), ...accountOf(context.env) };
  const stored = await openKeyRingParameter(call.parameter, options);
  try {
    await call.action(call, stored, context);
  } finally {
    stored.close();
  }
}

function parseCall(
  args: readonly string[],
): (KeyRingCall & { readonly action: KeyRingAction }) | undefined {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(args);
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
  const { values, positionals } = parsed;
  if (values.help) return undefined;
  const [name, ...more] = positionals;
  if (name === undefined) throw new UsageError("no action is given");
  const action = keyRingActions.get(name);
  if (action === undefined) throw new UsageError(`there is no action ${JSON.stringify(name)}`);
  if (more.length > 0) throw new UsageError(`unexpected argument ${JSON.stringify(more[0])}`);
  if (!values.parameter) throw new UsageError("--parameter is missing; use --parameter <name>");
  if (["activate", "remove", "forget"].includes(name) && !values.key)
    throw new UsageError("--key is missing; use --key <name>");
  const wrong = values.prefix.find((prefix) => !/^[A-Za-z0-9_.-]{1,100}$/.test(prefix));
  if (wrong !== undefined)
    throw new UsageError(`--prefix ${JSON.stringify(wrong)} is not letters, digits, _, . and -`);
  return {
    action,
    parameter: values.parameter,
    key: values.key || undefined,
    kmsKey: values["kms-key"],
    prefixes: values.prefix,
    bindVersion: values["bind-version"],
  };
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      parameter: { type: "string" },
      key: { type: "string" },
      "kms-key": { type: "string" },
      prefix: { type: "string", multiple: true, default: ["keelson"] },
      "bind-version": { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
}

/**
 * Returns the message of an error and of its causes, because "cannot be read" hides the error of
 * the store.
 */
function messageOf(error: unknown): string {
  /* v8 ignore next -- all code in this file throws errors only */
  if (!(error instanceof Error)) return String(error);
  return isTypedError(error) && error.cause !== undefined
    ? `${error.message}: ${messageOf(error.cause)}`
    : error.message;
}
