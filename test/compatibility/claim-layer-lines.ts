// Records of functions of plain Powertools, by the layer that a party has.
import { IdempotencyConfig, makeIdempotent } from "@aws-lambda-powertools/idempotency";
import type { BasePersistenceLayer } from "@aws-lambda-powertools/idempotency/persistence";
import { hugeText } from "./features.ts";
import { type CheckingParty, comparable, type Line, line, type Party } from "./line.ts";

interface Call {
  readonly result?: unknown;
  readonly config?: ConstructorParameters<typeof IdempotencyConfig>[0];
  /** The table has a sort key. */
  readonly isSorted?: boolean;
  /** Time for which a duplicate waits, in milliseconds. Default 500. */
  readonly waitMs?: number;
}

const event = ({ name }: Pick<Party, "name">, members: object = {}) => ({
  id: name,
  amount: 1,
  ...members,
});

/** The layer of a version, over the stack's tables. */
function layerOf(
  { version, store }: Party,
  { isSorted = false, waitMs = 500 }: Call,
): BasePersistenceLayer {
  const table = isSorted
    ? { tableName: "keelson-sorted", keyAttr: "pk", sortKeyAttr: "sk", staticPkValue: "calls" }
    : { tableName: "keelson-calls" };
  return new version.claimLayer.ClaimLayer({ ...table, awsSdkV3Client: store.dynamoDb, waitMs });
}

/** A function that is idempotent by the layer of the party; it runs for an event once. */
export function idempotent(party: Party, call: Call, run: () => unknown) {
  return makeIdempotent(async (_event: ReturnType<typeof event>) => run() as never, {
    persistenceStore: layerOf(party, call),
    keyPrefix: "kept",
    config: new IdempotencyConfig({ eventKeyJmesPath: "id", ...call.config }),
  });
}

const never = () => {
  throw new Error("it ran again");
};

/** A result after a round trip through JSON. */
const plain = (result: unknown): string => comparable(JSON.stringify(result ?? null));

const leave = (call: Call) => async (party: Party) =>
  plain(await idempotent(party, call, () => call.result)(event(party)));

const isAnswered = (call: Call) => async (party: CheckingParty, left: unknown) => {
  party.expect(plain(await idempotent(party, call, never)(event(party)))).toEqual(left);
};

const validated = {
  result: { charged: 1 },
  config: { payloadValidationJmesPath: "amount" },
} satisfies Call;

const results: readonly (readonly [name: string, call: Call])[] = [
  ["an object", { result: { charged: 1, nested: [null, true, { text: "ünï ✓" }] } }],
  ["a text", { result: "done ✓" }],
  ["a number", { result: 0.1 }],
  ["false", { result: false }],
  ["a list", { result: [] }],
  ["a result that is stored compressed", { result: { text: "again and again ".repeat(200) } }],
  ["an object in a table with a sort key", { result: { charged: 1 }, isSorted: true }],
  ["an object whose payload is validated", validated],
];

export const claimLayerLines: readonly Line[] = [
  ...results.map(([name, call]) =>
    line(`a function that gave ${name} is answered`, leave(call), isAnswered(call)),
  ),
  line("a function that gave nothing is not run again", leave({}), isAnswered({})),
  line(
    "a function that gave more than an item holds is answered",
    leave({ result: { text: hugeText } }),
    isAnswered({ result: { text: hugeText } }),
  ),
  line("a function with another payload is refused", leave(validated), async (party) => {
    const again = idempotent(party, validated, never)(event(party, { amount: 2 }));
    await party.expect(again).rejects.toMatchObject({ name: "IdempotencyValidationError" });
  }),
  line(
    "a function whose record has expired runs",
    leave({ result: "before" }),
    async (party) =>
      party.expect(await idempotent(party, {}, () => "again")(event(party))).toBe("again"),
    { ageMs: 3_602_000 },
  ),
  line(
    "a function in progress is waited for, and its duplicate refused meanwhile",
    begin,
    async (party) => {
      const again = idempotent(party, {}, never)(event(party));
      await party
        .expect(again)
        .rejects.toMatchObject({ name: "IdempotencyAlreadyInProgressError" });
      party.world.release(party.name);
    },
  ),
  line(
    "a function in progress whose lease is over is taken over",
    begin,
    async (party) => {
      party
        .expect(await idempotent(party, {}, () => "taken over")(event(party)))
        .toBe("taken over");
      party.world.release(party.name);
      party.expect(await idempotent(party, {}, never)(event(party))).toBe("taken over");
    },
    { ageMs: 40_000 },
  ),
];

/** Starts a function, and leaves it in its work. */
async function begin(party: Party): Promise<void> {
  const { world, name } = party;
  world.hold(name);
  const began = Promise.withResolvers<void>();
  const work = idempotent(party, {}, async () => {
    began.resolve();
    await world.gate(name);
    return "late";
  })(event(party));
  work.catch(() => undefined);
  await began.promise;
}
