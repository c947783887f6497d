import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { receiptLines, receiptOf } from "./receipt.ts";
import { type StoredItem, type TenantSource, textOf } from "./tenant-source.ts";
import {
  eraseTenant,
  exportTenant,
  firstState,
  maxDeletes,
  type TenantRows,
  type WalkState,
} from "./walk.ts";

// A model: tables are lists, keys are numbers, each row says whose it is. Every call may be the last of its process.

/** A row is its owner, or `?` where it does not say. */
type Tables = readonly (readonly string[])[];

function sourcesOf(tables: Tables): readonly TenantSource[] {
  return tables.map((_, index) => ({
    table: `t${index}`,
    tableName: `app-t${index}`,
    keys: ["id"],
    filter: { expression: "", names: {}, values: {} },
    looksAt: ["owner"],
    verdict: (item) =>
      textOf(item, "owner") === "?" ? "untold" : textOf(item, "owner") === "acme" ? "own" : "other",
    exported: (item) => item,
  }));
}

class Cut extends Error {}

/** Tables in memory. Rows lie in the order of their keys; a page begins behind a key, whether it is still there or not. */
function world(tables: Tables, pageSize: number) {
  const stored = tables.map((rows) => new Map(rows.map((owner, id) => [id, owner] as const)));
  let callsLeft = Number.POSITIVE_INFINITY;
  let calls = 0;
  const at = (source: TenantSource) => stored[Number(source.table.slice(1))] as Map<number, string>; // safe: made of them
  /** The process may die before a call, and after it. */
  const calling = <Answer>(call: () => Answer): Answer => {
    if (callsLeft === 0) throw new Cut();
    callsLeft -= 0.5;
    const answer = call();
    if (callsLeft === 0) throw new Cut();
    callsLeft -= 0.5;
    calls += 1;
    return answer;
  };
  const rows: TenantRows = {
    page: async (source, from) =>
      calling(() => {
        const after = Number(from?.["id"]?.N ?? -1);
        const behind = [...at(source)]
          .filter(([id]) => id > after)
          .sort(([one], [other]) => one - other);
        const page = behind.slice(0, pageSize);
        const last = page.at(-1);
        return {
          items: page.map(
            ([id, owner]): StoredItem => ({ id: { N: String(id) }, owner: { S: owner } }),
          ),
          scanned: page.length,
          next:
            last !== undefined && behind.length > page.length
              ? { id: { N: String(last[0]) } }
              : undefined,
        };
      }),
    remove: async (source, removed) =>
      calling(() => {
        expect(removed.length).toBeLessThanOrEqual(maxDeletes);
        for (const { id } of removed) at(source).delete(Number(id?.N));
      }),
  };
  return {
    rows,
    sources: sourcesOf(tables),
    calls: () => calls,
    cutAfter: (count: number) => {
      callsLeft = count;
    },
    owners: () => stored.map((table) => [...table.values()]),
    add: (table: number, id: number, owner: string) => void stored[table]?.set(id, owner),
  };
}

/** Runs again and again, each time up to the next cut, with what the run before has kept. */
async function throughCuts<Result>(
  { cutAfter }: ReturnType<typeof world>,
  cuts: readonly number[],
  run: (begun: WalkState | undefined, keep: (state: WalkState) => Promise<void>) => Promise<Result>,
): Promise<Result> {
  let kept: WalkState | undefined;
  const keep = async (state: WalkState) => {
    kept = JSON.parse(JSON.stringify(state)); // as a file has it
  };
  for (const count of cuts) {
    cutAfter(count);
    try {
      return await run(kept, keep);
    } catch (error) {
      if (!(error instanceof Cut)) throw error;
    }
  }
  cutAfter(Number.POSITIVE_INFINITY);
  return run(kept, keep);
}

const nothing = async () => undefined;
const model = {
  tables: fc.array(
    fc.array(fc.constantFrom("acme", "acme", "acme2", "globex", "?"), { maxLength: 60 }),
    {
      minLength: 1,
      maxLength: 4,
    },
  ),
  pageSize: fc.integer({ min: 1, max: 70 }),
  cuts: fc.array(
    fc.integer({ min: 0, max: 20 }).map((half) => half / 2),
    { maxLength: 8 },
  ),
};
const ownIn = (tables: Tables) =>
  tables.map((rows) => rows.filter((owner) => owner === "acme").length);
const sum = (numbers: readonly number[]) => numbers.reduce((one, other) => one + other, 0);

describe("erasing a tenant", () => {
  test("leaves none of its rows and every row of others, wherever it is interrupted, resumed or restarted", async () => {
    await fc.assert(
      fc.asyncProperty(
        model.tables,
        model.pageSize,
        model.cuts,
        fc.boolean(),
        async (tables, pageSize, cuts, goesOn) => {
          const stack = world(tables, pageSize);
          const erased = await throughCuts(stack, cuts, (begun, keep) =>
            eraseTenant({ ...stack, keep, begun: goesOn ? begun : undefined, isDryRun: false }),
          );
          expect(erased.isDone).toBe(true);
          expect(stack.owners()).toEqual(
            tables.map((rows) => rows.filter((owner) => owner !== "acme")),
          );
          if (cuts.length === 0)
            expect(erased.state.counts.map(({ rows }) => rows)).toEqual(ownIn(tables));
          stack.cutAfter(Number.POSITIVE_INFINITY);
          const again = await eraseTenant({ ...stack, keep: nothing, isDryRun: false });
          expect([again.isDone, again.state.pass, again.state.found]).toEqual([true, 1, 0]);
        },
      ),
    );
  });

  test("resumes after the last completed page: an interruption costs one page", async () => {
    const tables = [Array.from({ length: 40 }, () => "acme2"), ["acme"]];
    const whole = world(tables, 4);
    await eraseTenant({ ...whole, keep: nothing, isDryRun: false });
    const cut = world(tables, 4);
    await throughCuts(cut, [7, 3.5], (begun, keep) =>
      eraseTenant({ ...cut, keep, begun, isDryRun: false }),
    );
    expect([cut.owners(), cut.calls()]).toEqual([whole.owners(), whole.calls()]);
  });

  test("only counts in a dry run", async () => {
    await fc.assert(
      fc.asyncProperty(model.tables, model.pageSize, async (tables, pageSize) => {
        const stack = world(tables, pageSize);
        const { state, isDone } = await eraseTenant({ ...stack, keep: nothing, isDryRun: true });
        expect(isDone).toBe(true);
        expect(state).toMatchObject({ pass: 1, found: sum(ownIn(tables)) });
        expect(state.counts).toEqual(
          tables.map((rows, index) => ({
            scanned: rows.length,
            rows: ownIn(tables)[index],
            untold: rows.filter((owner) => owner === "?").length,
          })),
        );
        expect(stack.owners()).toEqual(tables);
      }),
    );
  });

  test("counts each row once in a dry run, wherever it is interrupted", async () => {
    const many = fc.array(fc.constantFrom("acme", "acme", "acme", "globex", "?"), {
      minLength: 150,
      maxLength: 400,
    });
    const sizes = fc.integer({ min: 100, max: 400 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(many, { minLength: 1, maxLength: 2 }),
        sizes,
        model.cuts,
        async (tables, pageSize, cuts) => {
          const stack = world(tables, pageSize);
          // The process may also die while a state is kept: before it, or after it.
          let keepsLeft = cuts.length;
          const { state } = await throughCuts(
            stack,
            [...cuts, 1_000, 1_000, 1_000],
            (begun, keep) =>
              eraseTenant({
                ...stack,
                begun,
                isDryRun: true,
                keep: async (next) => {
                  await keep(next);
                  keepsLeft -= 1;
                  if (keepsLeft >= 0 && keepsLeft % 2 === 0) throw new Cut();
                },
              }),
          );
          expect(state.counts.map(({ rows }) => rows)).toEqual(ownIn(tables));
          expect(state.counts.map(({ scanned }) => scanned)).toEqual(
            tables.map(({ length }) => length),
          );
          expect(stack.owners()).toEqual(tables);
        },
      ),
      { numRuns: 50 },
    );
  });

  test("finds rows written behind a page it has read, and reports when rows keep coming", async () => {
    const tables = [["acme"], ["acme"]];
    for (const [times, expected] of [
      [1, { isDone: true, left: 0, passes: 3 }],
      [9, { isDone: false, left: 1, passes: 5 }],
    ] as const) {
      const stack = world(tables, 10);
      let written = 0;
      const rows: TenantRows = {
        ...stack.rows,
        page: async (...asked) => {
          const page = await stack.rows.page(...asked);
          // After the first table was read, and before the second is.
          if (asked[0].table === "t0" && written < times) stack.add(0, 100 + written++, "acme");
          return page;
        },
      };
      const { state, isDone } = await eraseTenant({
        ...stack,
        rows,
        keep: nothing,
        isDryRun: false,
      });
      expect({ isDone, left: sum(ownIn(stack.owners())), passes: state.pass }).toEqual(expected);
    }
  });

  test("finishes despite rows without an owner, which are counted once in any number of passes", async () => {
    const stack = world([["?", "acme", "?", "globex", "?"]], 2);
    const { state, isDone } = await eraseTenant({ ...stack, keep: nothing, isDryRun: false });
    expect([isDone, state.pass, state.counts]).toEqual([
      true,
      2,
      [{ scanned: 9, rows: 1, untold: 3 }],
    ]);
    const tenant = {
      action: "erase",
      tenant: "ac\u2028me",
      at: "2026-11-22T00:00:00.000Z",
    } as const;
    const receipt = receiptOf({
      ...tenant,
      isDone,
      state,
      sources: stack.sources,
      notCovered: ["logs"],
    });
    expect(receiptLines(receipt)).toEqual([
      "app-t0: 1 row erased",
      'tenant "ac\u2028me": 1 row erased in 2 passes',
      "not covered:",
      "- 3 rows of app-t0 without a tenant: the system's, or an older version's",
      "- logs",
    ]);
    expect(
      receiptLines({ ...receipt, isDone: false, passes: 1, tables: [], notCovered: [] }),
    ).toEqual([
      'tenant "ac\u2028me": 1 row erased in 1 pass',
      "rows keep coming: stop the tenant, then run this again",
      "not covered:",
    ]);
  });
});

describe("exporting a tenant", () => {
  test("writes each of its rows once and none of others, wherever it is interrupted", async () => {
    await fc.assert(
      fc.asyncProperty(model.tables, model.pageSize, model.cuts, async (tables, pageSize, cuts) => {
        const stack = world(tables, pageSize);
        let file = "";
        let bytes = 0;
        await throughCuts(stack, cuts, (begun, keep) => {
          file = file.slice(0, begun === undefined ? 0 : bytes); // what was written behind the last state does not count
          const write = async (lines: string) => {
            file += lines;
          };
          return exportTenant({
            ...stack,
            begun,
            write,
            keep: (state) => {
              bytes = file.length;
              return keep(state);
            },
          });
        });
        const lines = file
          .split("\n")
          .slice(0, -1)
          .map((line) => JSON.parse(line));
        expect(lines).toEqual(
          tables.flatMap((rows, table) =>
            rows.flatMap((owner, id) =>
              owner === "acme"
                ? [{ table: `t${table}`, item: { id: { N: String(id) }, owner: { S: "acme" } } }]
                : [],
            ),
          ),
        );
      }),
    );
  });

  test("counts what it has written, as does its receipt", async () => {
    const stack = world([["acme", "globex", "acme"], []], 2);
    const state = await exportTenant({ ...stack, keep: nothing, write: nothing });
    const at = "2026-11-22T00:00:00.000Z";
    const receipt = receiptOf({
      action: "export",
      tenant: "acme",
      at,
      isDone: true,
      state,
      sources: stack.sources,
      notCovered: [],
    });
    expect(receipt).toEqual({
      action: "export",
      tenant: "acme",
      at,
      tables: [
        { table: "t0", tableName: "app-t0", scanned: 3, rows: 2 },
        { table: "t1", tableName: "app-t1", scanned: 0, rows: 0 },
      ],
      rows: 2,
      passes: 1,
      isDone: true,
      notCovered: [],
    });
    expect(receiptLines(receipt).slice(0, 3)).toEqual([
      "app-t0: 2 rows exported",
      "app-t1: 0 rows exported",
      'tenant "acme": 2 rows exported',
    ]);
    expect(firstState(stack.sources)).toMatchObject({ pass: 1, at: 0, found: 0 });
  });
});
