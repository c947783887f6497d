import type { Readable } from "node:stream";
import { isIdentifier, maxNameLength } from "../../../base/identity/access.ts";
import type { ApiKey, ApiKeyStore } from "../../../parts/api-keys/api-key.ts";
import { hashOfSecret, isWellFormed } from "../../../parts/api-keys/secret.ts";
import {
  actionOf,
  type CommandContext,
  defineCommand,
  itsEnvironment,
  listed,
  moduleArgument,
  moduleOf,
  oneLine,
  options,
  refuse,
  refuseArgument,
  required,
} from "../setup/define-command.ts";
import { onItsServer } from "../setup/its-server.ts";
import { jsonFlag, printRows } from "../setup/print-rows.ts";

const actions = { list: true, revoke: true };

export const command = defineCommand({
  name: "api-keys",
  actions,
  usage: `Usage: keelson api-keys list <module> <tenant> [--json]
       keelson api-keys revoke <module> <tenant> <id>
       keelson api-keys revoke <module> [<tenant>] < file-with-a-key

Lists the API keys of a tenant, without secrets, and revokes one: by its ID, or by a leaked key on standard input, of
whichever tenant it is. Running processes refuse it within 5 seconds.

${moduleArgument}
${listed({ "<tenant>": "the tenant, as tokens have it", "<id>": "the ID of a key" })}

${options(jsonFlag)}

${itsEnvironment}
Exit codes: 0 done, 1 failed, or there is no such key, 2 wrong usage.`,
  flags: jsonFlag,
  maxArguments: 4,
  run: async (values, [given, path, tenant, id], context) => {
    const action = actionOf(actions, given);
    const module = moduleOf(path, `api-keys ${action}`, " <tenant>");
    if (tenant !== undefined && !isIdentifier(tenant))
      refuse(
        `the tenant is not a string of 1 to ${maxNameLength} characters without control characters`,
      );
    if (action === "list") refuseArgument(id);
    else if (values.json) refuse("--json is an option of list");
    const work =
      action === "list" ? listing(module, tenant, values) : await revoking(context, tenant, id);
    await onItsServer(module, context, async ({ adapters }, there) =>
      work(await (await adapters.open()).apiKeys.open(), there),
    );
    return 0;
  },
});

type Work = (store: ApiKeyStore, context: CommandContext) => Promise<void>;

function listing(
  module: string,
  given: string | undefined,
  values: { readonly json: boolean },
): Work {
  const tenant = required(
    given,
    `no tenant is given; use keelson api-keys list ${module} <tenant>`,
  );
  return async (store, context) => {
    const rows = (await store.list(tenant)).map((key) => {
      const { id, name, roles, createdMs, expiresMs, lastUsedMs } = key;
      const times = {
        createdAt: timeOf(createdMs),
        expiresAt: timeOf(expiresMs),
        lastUsedAt: timeOf(lastUsedMs),
      };
      return { id, name, roles, ...times };
    });
    await printRows(rows, values, context, `no API key of ${tenant}`);
  };
}

function timeOf(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}

async function revoking(
  { input, clock }: CommandContext,
  tenant: string | undefined,
  id: string | undefined,
): Promise<Work> {
  const secret = id === undefined ? await secretOf(input) : undefined;
  const find = async (store: ApiKeyStore): Promise<ApiKey | undefined> => {
    const owner = secret === undefined ? undefined : await store.find(hashOfSecret(secret));
    if (owner !== undefined && tenant !== undefined && owner.tenantId !== tenant)
      throw new Error("the key is one of another tenant; nothing was revoked");
    if (owner?.endsMs !== undefined && owner.endsMs <= clock.now())
      throw new Error("the key has expired or was replaced; nothing was revoked");
    const [tenantId, keyId] = [owner?.tenantId ?? tenant, owner?.id ?? id];
    return tenantId === undefined || keyId === undefined ? undefined : store.read(tenantId, keyId);
  };
  return async (store, { print }) => {
    const key = await find(store);
    if (key === undefined) throw new Error("there is no such API key");
    await store.write(store.removed(key));
    print(`revoked ${key.id} (${oneLine(key.name)}) of ${oneLine(key.tenantId)}`);
  };
}

/** Longest input that is read, in characters. */
const longestInput = 10_000;

async function secretOf(input: (() => Readable) | undefined): Promise<string> {
  if (input === undefined) refuse("neither an ID is given nor a key on standard input");
  let text = "";
  for await (const chunk of input()) {
    text += String(chunk);
    if (text.length > longestInput) break;
  }
  const secret = text.trim();
  if (!isWellFormed(secret))
    refuse("standard input is not an API key, or its checksum is wrong; pass only the key");
  return secret;
}
