import { parseArgs } from "node:util";
import { physicalTableName } from "../app/table.ts";
import { accountOf, dynamoDbEndpoint, ssmEndpoint } from "../aws/adapters.ts";
import { dynamoConfigStore } from "../aws/config-store.ts";
import { openDatabase } from "../aws/dynamodb.ts";
import { type KeyRingParameter, openKeyRingParameter } from "../aws/key-ring-parameter.ts";
import { type KeyRingText, newRingKey, parseKeyRing, parseKeyRingText } from "../config/key-ring.ts";
import { rotateRows } from "../config/rotation.ts";
import { createRowCipher } from "../config/row-value.ts";
import { createSecrets } from "../config/secrets.ts";
import type { ConfigStore } from "../config/store.ts";
import { isTypedError } from "../errors/errors.ts";
import type { CommandContext } from "./command.ts";

/** What `keelson key-ring --help` prints. */
export const keyRingUsage = `Usage: keelson key-ring <action> --parameter <name> [options]

Changes the key ring in an SSM parameter, a SecureString. No key is ever printed.

Actions, in the order of a rotation:
  create                      makes the parameter, with one key
  add                         adds a key, which only opens until it is activated
  activate --key <name>       lets a key seal from now on
  rotate                      seals all stored secrets anew with the active key
  remove --key <name>         removes a key, if no stored secret needs it
  list                        prints the names of the keys

Options:
  --parameter <name>          the SSM parameter: keyRing.parameter of buildServer
  --key <name>                the key (default for create and add: today's date)
  --prefix <text>             dynamodb.prefix of the server (default: keelson)
  --help                      print this text

Region, credentials, endpoints and KEELSON_TABLE_CONFIG come from the environment.`;

interface Call {
  readonly action: string;
  readonly parameter: string;
  readonly key: string | undefined;
  readonly prefix: string;
}

/** The command was used wrongly. */
class UsageError extends Error {}

/** Runs `keelson key-ring` and returns its exit code: 0, 1 where it failed, 2 where it was used wrongly. */
export async function runKeyRingCommand(args: readonly string[], context: CommandContext): Promise<number> {
  try {
    const call = parseCall(args);
    if (call === undefined) {
      context.print(keyRingUsage);
      return 0;
    }
    const stored = await openKeyRingParameter(call.parameter, {
      endpoint: ssmEndpoint(context.env),
      ...accountOf(context.env),
    });
    try {
      // Safe: parseCall lets known actions through only.
      await (actions[call.action] as Action)(call, stored, context);
      return 0;
    } finally {
      stored.close();
    }
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

type Action = (call: Call, stored: KeyRingParameter, context: CommandContext) => Promise<void>;

const actions: Readonly<Record<string, Action>> = Object.assign(Object.create(null), {
  create: async (call, stored, { clock, print }) => {
    if ((await stored.read()) !== undefined) throw new Error(`the parameter ${call.parameter} is there already; say add`);
    const name = call.key ?? today(clock.now());
    await stored.create(checked({ active: name, keys: { [name]: newRingKey() } }));
    print(`${call.parameter}: made, with the key ${name}`);
  },
  add: async (call, stored, { clock, print }) => {
    const ring = await readRing(call, stored);
    const name = call.key ?? today(clock.now());
    if (Object.hasOwn(ring.keys, name)) throw new Error(`the ring has a key ${name}; say --key with another name`);
    await stored.replace(checked({ ...ring, keys: { ...ring.keys, [name]: newRingKey() } }));
    print(`${call.parameter}: added the key ${name}; ${ring.active} still seals`);
  },
  activate: async (call, stored, { print }) => {
    const ring = await readRing(call, stored);
    const name = ownKey(ring, call);
    await stored.replace(checked({ ...ring, active: name }));
    print(`${call.parameter}: the key ${name} seals from now on; say rotate in 10 seconds or later`);
  },
  rotate: async (call, stored, context) => {
    const secrets = createSecrets({
      clock: context.clock,
      load: async () => parseKeyRing(checked(await readRing(call, stored))),
    });
    secrets.begin(parseKeyRing(checked(await readRing(call, stored))));
    await withStore(call, context, async (store, table) => {
      const { print } = context;
      const log = { warn: (message: string, data?: object) => context.complain(`${message} ${JSON.stringify(data)}`) };
      const cipher = createRowCipher(secrets, () => table);
      const { activeKey, resealed, overtaken, locked } = await rotateRows(
        { store, cipher, log },
        { onProgress: ({ scanned, resealed }) => print(`${scanned} items of ${table}: ${resealed} sealed anew`) },
      );
      print(
        `done with the key ${activeKey}: ${resealed} sealed anew, ${overtaken} written meanwhile, ${locked} that do not open`,
      );
      if (locked > 0) throw new Error(`${locked} secrets do not open with any key of the ring; they were left as they are`);
    });
  },
  remove: async (call, stored, context) => {
    const ring = await readRing(call, stored);
    const name = ownKey(ring, call);
    if (name === ring.active) throw new Error(`${name} is the key that seals; activate another first`);
    await withStore(call, context, async (store, table) => {
      const uses = await countUses(store, name);
      if (uses > 0) throw new Error(`${uses} secrets of ${table} are sealed with ${name}; say rotate first`);
    });
    const { [name]: _removed, ...keys } = ring.keys;
    await stored.replace(checked({ ...ring, keys }));
    context.print(`${call.parameter}: removed the key ${name}`);
  },
  list: async (call, stored, { print }) => {
    const { active, keys } = await readRing(call, stored);
    for (const name of Object.keys(keys)) print(name === active ? `${name} (active)` : name);
  },
} satisfies Record<string, Action>);

function parseCall(args: readonly string[]): Call | undefined {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(args);
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
  const { values, positionals } = parsed;
  if (values.help) return undefined;
  const [action, ...more] = positionals;
  if (action === undefined) throw new UsageError("no action is given");
  if (actions[action] === undefined) throw new UsageError(`there is no action ${JSON.stringify(action)}`);
  if (more.length > 0) throw new UsageError(`unexpected argument ${JSON.stringify(more[0])}`);
  if (!values.parameter) throw new UsageError("--parameter is missing; say --parameter <name>");
  if (["activate", "remove"].includes(action) && !values.key) throw new UsageError("--key is missing; say --key <name>");
  return { action, parameter: values.parameter, key: values.key || undefined, prefix: values.prefix };
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      parameter: { type: "string" },
      key: { type: "string" },
      prefix: { type: "string", default: "keelson" },
      help: { type: "boolean", default: false },
    },
  });
}

async function readRing({ parameter }: Call, stored: KeyRingParameter): Promise<KeyRingText> {
  const text = await stored.read();
  if (text === undefined) throw new Error(`there is no parameter ${parameter}; say create first`);
  return parseKeyRingText(text);
}

/** The key that the call names. */
function ownKey(ring: KeyRingText, { key }: Call): string {
  // Safe: parseCall has asked for it.
  const name = key as string;
  if (Object.hasOwn(ring.keys, name)) return name;
  throw new Error(`the ring has no key ${name}; it has ${Object.keys(ring.keys).join(", ")}`);
}

/** The ring as text. Nothing is stored that a server would refuse. */
function checked(ring: KeyRingText): string {
  const text = JSON.stringify(ring);
  parseKeyRingText(text);
  return text;
}

async function withStore(
  { prefix }: Call,
  { env }: CommandContext,
  work: (store: ConfigStore, table: string) => Promise<void>,
): Promise<void> {
  const database = await openDatabase({ endpoint: dynamoDbEndpoint(env), ...accountOf(env) });
  try {
    const table = physicalTableName("config", prefix, env);
    await work(dynamoConfigStore(database, table), table);
  } finally {
    database.destroy();
  }
}

async function countUses(store: ConfigStore, name: string): Promise<number> {
  let uses = 0;
  let from: string | undefined;
  do {
    const { rows, next } = await store.sealedRows(from);
    uses += rows.filter(({ value }) => value.key === name).length;
    from = next;
  } while (from !== undefined);
  return uses;
}

function today(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(0, 10);
}

/** What went wrong, with its cause: a store that fails is behind "cannot be read". */
function messageOf(error: unknown): string {
  /* v8 ignore next -- nothing here throws anything else */
  if (!(error instanceof Error)) return String(error);
  return isTypedError(error) && error.cause !== undefined ? `${error.message}: ${messageOf(error.cause)}` : error.message;
}
