import { openKeyRingParameter } from "../../../aws/clients/key-ring-parameter.ts";
import { isTypedError } from "../../../base/errors/errors.ts";
import {
  actionOf,
  defineCommand,
  flag,
  listed,
  messageOf,
  options,
  refuse,
  text,
  texts,
} from "../setup/define-command.ts";
import { awsPlace, onItsStack } from "../setup/its-server.ts";
import { jsonFlag } from "../setup/print-rows.ts";
import { keyRingActions } from "./key-ring-actions.ts";

const flags = {
  parameter: text("<name>", "the SSM parameter: keyRing.parameter of buildServer"),
  key: text("<name>", "the key (default for create and add: today's date)"),
  "kms-key": text(
    "<id>",
    "for create: the KMS key that encrypts the parameter (default: alias/aws/ssm)",
  ),
  prefix: texts(
    "<text>",
    "the server's dynamodb.prefix (default: keelson); repeat it for each server that uses the ring",
    ["keelson"],
  ),
  "bind-version": flag(
    "for rotate: binds secrets to their row's version, like keyRing.bindVersion of the server",
  ),
  ...jsonFlag,
} as const;

const keyed: readonly string[] = ["activate", "remove", "forget"];

export const command = defineCommand({
  name: "key-ring",
  actions: keyRingActions,
  usage: `Usage: keelson key-ring <action> --parameter <name> [options]

Manages the key ring, a SecureString in SSM. It never prints a key.

Actions, in the order of a rotation:
${listed({
  create: "creates the parameter with one key",
  add: "adds a key, which only decrypts until it is activated",
  "activate --key <name>": "encrypts with this key from now on",
  rotate: "encrypts all stored secrets again with the active key",
  "remove --key <name>":
    "removes a key that no stored secret needs; messages that it\nsigned can still be verified for 379 days",
  "forget --key <name>": "ends that too, for a leaked key",
  list: "prints the names of the keys and what they do",
})}

activate and rotate wait up to 15 s until running servers know the last change; remove has to
come at least five minutes after it, and after the encrypted responses and step results of
writes have expired. Run one action at a time: SSM does not lock parameters.

${options(flags)}

Region, credentials, endpoints and KEELSON_TABLE_CONFIG come from the environment.`,
  flags,
  run: async (values, [name], context) => {
    const { parameter, key, prefix: prefixes } = values;
    const action = actionOf(keyRingActions, name);
    if (!parameter) refuse("--parameter is missing; use --parameter <name>");
    if (keyed.includes(action) && !key) refuse("--key is missing; use --key <name>");
    const wrong = prefixes.find((prefix) => !/^[A-Za-z0-9_.-]{1,100}$/.test(prefix));
    if (wrong !== undefined)
      refuse(`--prefix ${JSON.stringify(wrong)} is not letters, digits, _, . and -`);
    const { "kms-key": kmsKey, "bind-version": bindVersion, json } = values;
    if (json && action !== "list") refuse("--json is an option of list");
    const given = { parameter, key: key || undefined, kmsKey, prefixes, bindVersion, json };
    try {
      await onItsStack(context, undefined, async (there) => {
        const stored = await openKeyRingParameter(parameter, awsPlace(there.env, "SSM"));
        try {
          await keyRingActions[action]({ ...there, ...given, stored });
        } finally {
          stored.close();
        }
      });
    } catch (error) {
      throw new Error(withCauses(error), { cause: error });
    }
    return 0;
  },
});

/** Adds the messages of causes, because "cannot be read" hides the store's error. */
function withCauses(error: unknown): string {
  return isTypedError(error) && error.cause !== undefined
    ? `${error.message}: ${withCauses(error.cause)}`
    : messageOf(error);
}
