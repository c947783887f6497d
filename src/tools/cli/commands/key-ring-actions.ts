import { physicalTableName } from "../../../app/handlers/table.ts";
import type { KeyRingParameter } from "../../../aws/clients/key-ring-parameter.ts";
import { dynamoConfigStore } from "../../../aws/stores/config-store.ts";
import {
  type KeyRingText,
  newRingKey,
  parseKeyRing,
  parseKeyRingText,
  pruned,
  retiredKey,
} from "../../../base/secrets/key-ring.ts";
import { createSecrets } from "../../../base/secrets/secrets.ts";
import type { ConfigStore } from "../../../parts/config/operate/operator-session.ts";
import { rotateRows } from "../../../parts/config/operate/rotation.ts";
import { createRowCipher } from "../../../parts/config/read/row-cipher.ts";
import type { CommandContext } from "../setup/define-command.ts";
import { awsPlace, withDatabase } from "../setup/its-server.ts";
import { printRows } from "../setup/print-rows.ts";

interface KeyRingCall
  extends Pick<CommandContext, "clock" | "complain" | "env" | "print" | "wait"> {
  readonly stored: KeyRingParameter;
  readonly parameter: string;
  readonly key: string | undefined;
  readonly kmsKey: string | undefined;
  readonly prefixes: readonly string[];
  readonly bindVersion: boolean;
  readonly json: boolean;
}

/** Time until every server knows of a change: servers cache the ring for up to 10 s. */
const knownMs = 15_000;
/** A write that stores its response encrypted keeps the response for five minutes. */
const answerRetentionMs = 310_000;

export const keyRingActions = {
  create: async ({ stored, parameter, kmsKey, clock, print, ...call }) => {
    if ((await stored.read()) !== undefined)
      throw new Error(`the parameter ${parameter} exists already; use add`);
    const name = call.key ?? today(clock.now());
    await stored.create(checked({ active: name, keys: { [name]: newRingKey() } }), kmsKey);
    print(`${parameter}: created with the key ${name}`);
  },
  add: async (call) => {
    const name = call.key ?? today(call.clock.now());
    const { active } = await change(call, (ring) => {
      const another = "give another name with --key";
      if (Object.hasOwn(ring.keys, name)) throw new Error(`the ring has a key ${name}; ${another}`);
      if (Object.hasOwn(ring.retired ?? {}, name))
        throw new Error(`the ring had a key ${name}, which still verifies messages; ${another}`);
      return { ...ring, keys: { ...ring.keys, [name]: newRingKey() } };
    });
    call.print(`${call.parameter}: added the key ${name}; ${active} still seals`);
  },
  activate: async (call) => {
    const name = ownKey((await readRing(call)).ring, call);
    await untilKnown(call);
    await change(call, (ring) => ({ ...ring, active: ownKey(ring, call) }));
    call.print(`${call.parameter}: the key ${name} seals from now on`);
  },
  rotate: async (call) => {
    const { clock, print, complain } = call;
    const { ring } = await readRing(call);
    await untilKnown(call);
    const load = async () => parseKeyRing(JSON.stringify((await readRing(call)).ring));
    const secrets = createSecrets({ clock, load });
    secrets.begin(parseKeyRing(checked(ring)), clock.now());
    const warn = (message: string, data?: object) => complain(`${message} ${JSON.stringify(data)}`);
    let [overtaken, locked] = [0, 0];
    await inEachTable(call, async (store, table) => {
      const onProgress = ({ scanned, resealed }: { scanned: number; resealed: number }) =>
        print(`${scanned} items of ${table}: ${resealed} sealed again`);
      const cipher = createRowCipher(secrets, () => table, call);
      const rotated = await rotateRows({ store, cipher, log: { warn } }, { onProgress });
      print(
        `${table}: ${rotated.resealed} sealed again with ${rotated.activeKey}, ${rotated.overtaken} changed during the run, ${rotated.locked} that do not open`,
      );
      overtaken += rotated.overtaken;
      locked += rotated.locked;
    });
    if (locked + overtaken > 0)
      throw new Error(
        `not done: ${locked} secrets do not open with any key of the ring, and were not changed; ${overtaken} changed during the run, so run rotate again`,
      );
  },
  remove: async (call) => {
    const { clock, print, parameter } = call;
    const { ring, changedMs } = await readRing(call);
    const key = ownKey(ring, call);
    assertRetired(ring, key);
    const youngMs = changedMs + answerRetentionMs - clock.now();
    if (youngMs > 0)
      throw new Error(
        `the ring was changed less than five minutes ago, and stored answers may be sealed with ${key}; try again in ${Math.ceil(Math.min(youngMs, answerRetentionMs) / 1000)} s`,
      );
    await inEachTable(call, async (store, table) => {
      const uses = await countUses(store, key);
      if (uses > 0)
        throw new Error(`${uses} secrets of ${table} are sealed with ${key}; run rotate first`);
      print(`${table}: no secret is sealed with ${key}`);
    });
    const { retired } = await change(call, (now) => {
      assertRetired(now, ownKey(now, call));
      const { [key]: secret, ...keys } = now.keys;
      // Queues can still hold messages signed with the key. Safe cast: `ownKey` found it.
      const kept = retiredKey(secret as string, clock.now());
      return { ...now, keys, retired: { ...now.retired, [key]: kept } };
    });
    print(
      `${parameter}: removed the key ${key}; messages that it signed are accepted until ${retired?.[key]?.until}`,
    );
  },
  forget: async (call) => {
    const name = String(call.key);
    await change(call, (ring) => {
      const { retired = {} } = ring;
      if (!Object.hasOwn(retired, name)) throw new Error(`the ring has no removed key ${name}`);
      const { [name]: _forgotten, ...left } = retired;
      return { ...ring, retired: left };
    });
    call.print(`${call.parameter}: messages signed with ${name} are refused within five minutes`);
  },
  list: async (call) => {
    const { active, keys, retired = {} } = pruned((await readRing(call)).ring, call.clock.now());
    const rows = [
      ...Object.keys(keys).map((key) => ({ key, state: key === active ? "active" : "decrypts" })),
      ...Object.entries(retired).map(([key, { until }]) => ({
        key,
        state: "removed",
        verifiesMessagesUntil: until,
      })),
    ];
    await printRows(rows, call, call, "the ring has no key");
  },
} satisfies Record<string, (call: KeyRingCall) => Promise<void>>;

async function readRing({ stored, parameter }: KeyRingCall) {
  const found = await stored.read();
  if (found === undefined) throw new Error(`there is no parameter ${parameter}; run create first`);
  return { ...found, ring: parseKeyRingText(found.text) };
}

async function change(
  call: KeyRingCall,
  to: (ring: KeyRingText) => KeyRingText,
): Promise<KeyRingText> {
  const { ring, version } = await readRing(call);
  const changed = to(pruned(ring, call.clock.now()));
  if (await call.stored.replace(checked(changed), version)) return changed;
  throw new Error(
    `another process changed ${call.parameter} at the same moment and was overwritten: compare its last versions in SSM and repair it`,
  );
}

async function untilKnown(call: KeyRingCall) {
  const { changedMs } = await readRing(call);
  const leftMs = Math.min(knownMs, changedMs + knownMs - call.clock.now());
  if (leftMs <= 0) return;
  const seconds = Math.ceil(leftMs / 1000);
  call.print(`waiting ${seconds} s, until running servers know of the last change`);
  await call.wait(leftMs);
}

function ownKey(ring: KeyRingText, { key }: KeyRingCall) {
  const name = String(key);
  if (Object.hasOwn(ring.keys, name)) return name;
  throw new Error(`the ring has no key ${name}; it has ${Object.keys(ring.keys).join(", ")}`);
}

function assertRetired({ active }: KeyRingText, name: string) {
  if (name === active) throw new Error(`${name} is the key that seals; activate another first`);
}

/** @throws Error if a server would reject the ring. */
function checked(ring: KeyRingText) {
  const text = JSON.stringify(ring);
  parseKeyRingText(text);
  return text;
}

async function inEachTable(
  { prefixes, env }: KeyRingCall,
  work: (store: ConfigStore, table: string) => Promise<void>,
) {
  await withDatabase(awsPlace(env, "DYNAMODB"), async (database) => {
    const tables = prefixes.map((prefix) => physicalTableName("config", prefix, env));
    for (const table of new Set(tables)) await work(dynamoConfigStore(database, table), table);
  });
}

async function countUses(store: ConfigStore, name: string, from?: string): Promise<number> {
  const { rows, next } = await store.sealedRows(from);
  const uses = rows.filter(({ value }) => value.key === name).length;
  return next === undefined ? uses : uses + (await countUses(store, name, next));
}

function today(nowMs: number) {
  return new Date(nowMs).toISOString().slice(0, 10);
}
