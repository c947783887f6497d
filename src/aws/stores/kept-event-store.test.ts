import { describe, expect, test } from "vitest";
import type { Database } from "../../base/types/database.ts";
import { keptDays } from "./kept-event-store.ts";

const stream = { tenantId: "acme", type: "file.created" };
const noon = Date.UTC(2026, 10, 22, 12);
const dayMs = 86_400_000;

interface Put {
  readonly Item: Readonly<Record<string, { readonly S?: string; readonly N?: string }>>;
  readonly ConditionExpression: string;
}

/** A table that answers the look for the two rows with some, and each put as it is told. */
function table(rows: readonly object[] | undefined, answer: (put: Put) => unknown = () => ({})) {
  const calls: string[] = [];
  const puts: Put[] = [];
  const send = async (command: {
    readonly constructor: { readonly name: string };
    readonly input: object;
  }) => {
    calls.push(command.constructor.name);
    if (command.constructor.name === "BatchGetItemCommand")
      return rows === undefined ? {} : { Responses: { kept: rows } };
    puts.push(command.input as Put);
    return answer(command.input as Put);
  };
  // Safe: it is asked for nothing else.
  const days = keptDays({ send } as unknown as Database, "kept");
  const sorts = () => puts.map(({ Item }) => Item["sk"]?.S);
  return { days, calls, puts, sorts };
}

const first = { sk: { S: "first" } };
const day = (expiration?: number) => ({
  sk: { S: "2026-11-22" },
  ...(expiration === undefined ? {} : { expiration: { N: String(expiration) } }),
});
/** When a day that is noted at noon may go, where its events are kept for three days. */
const afterThree = Date.UTC(2026, 10, 26) / 1_000;

describe("recording a day", () => {
  test("puts the row of the first event before the row of the day, and makes no further call for ten minutes", async () => {
    const { days, calls, puts, sorts } = table([]);
    await days.note(stream, noon, 3);
    expect(sorts()).toEqual(["first", "2026-11-22"]);
    expect(puts[0]?.Item).toEqual({
      pk: { S: "acme/days/file.created" },
      sk: { S: "first" },
      type: { S: "file.created" },
      tenantId: { S: "acme" },
      keptUntil: { N: String((noon + 3 * dayMs) / 1_000) },
    });
    expect(puts[1]?.Item["expiration"]).toEqual({ N: String(afterThree) });
    await days.note(stream, noon + 599_999, 3);
    expect(calls).toHaveLength(3);
    await days.note(stream, noon + 600_000, 3);
    expect(calls).toHaveLength(6);
  });

  test("reads the rows again after the clock is set back", async () => {
    const { days, calls } = table([first, day()]);
    await days.note(stream, noon, 3);
    await days.note(stream, noon - 1, 3);
    expect(calls).toEqual(["BatchGetItemCommand", "BatchGetItemCommand"]);
  });

  test("also puts the next day, and that of another tenant, type and duration", async () => {
    const { days, sorts } = table([first]);
    await days.note(stream, noon, 3);
    await days.note(stream, noon + dayMs, 3);
    await days.note({ type: "file.created" }, noon, 3);
    await days.note({ ...stream, type: "file.deleted" }, noon, 3);
    await days.note(stream, noon, 4);
    expect(sorts()).toEqual(["2026-11-22", "2026-11-23", "2026-11-22", "2026-11-22", "2026-11-22"]);
  });

  test.each([
    ["that lasts as long", day(afterThree), 3, false],
    ["that lasts longer", day(afterThree + 1), 3, false],
    ["that lasts for ever", day(), 3, false],
    ["that lasts for ever, for ever", day(), Number.POSITIVE_INFINITY, false],
    ["that ends before", day(afterThree - 1), 3, true],
    ["that ends, for ever", day(afterThree), Number.POSITIVE_INFINITY, true],
  ])("checks the day %s", async (_what, row, keepDays, isPut) => {
    const { days, sorts } = table([first, row]);
    await days.note(stream, noon, keepDays);
    expect(sorts()).toEqual(isPut ? ["2026-11-22"] : []);
  });

  test("of events that are kept forever has rows without an expiry", async () => {
    const { days, puts } = table(undefined);
    await days.note({ type: "file.created" }, noon, Number.POSITIVE_INFINITY);
    expect(puts.map(({ Item }) => Object.keys(Item))).toEqual([
      ["pk", "sk", "type"],
      ["pk", "sk"],
    ]);
  });

  test("accepts a row that another process has put in the meantime, and throws any other error", async () => {
    const failing = (name: string) => () =>
      Promise.reject(Object.assign(new Error(name), { name }));
    await table([], failing("ConditionalCheckFailedException")).days.note(stream, noon, 3);
    await expect(
      table([], failing("InternalServerError")).days.note(stream, noon, 3),
    ).rejects.toThrow("InternalServerError");
    await expect(table([], () => Promise.reject("odd")).days.note(stream, noon, 3)).rejects.toBe(
      "odd",
    );
  });

  test("remembers a limited number of days", async () => {
    const { days, calls } = table([first, day()]);
    for (let n = 0; n < 10_000; n += 1)
      await days.note({ tenantId: `t${n}`, type: "file.created" }, noon, 3);
    const before = calls.length;
    await days.note({ tenantId: "t0", type: "file.created" }, noon, 3);
    expect(calls).toHaveLength(before);
    await days.note({ tenantId: "another", type: "file.created" }, noon, 3);
    await days.note({ tenantId: "t0", type: "file.created" }, noon, 3);
    expect(calls).toHaveLength(before + 2);
  });
});
