import fc from "fast-check";
import type { ConfigScope } from "keelson";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runs } from "../support/runs.ts";
import { declareKeys, type Fixture, startFixture, untyped } from "./fixture.ts";

/** What one level holds. */
interface StoredRow {
  readonly value: unknown;
  readonly state: "current" | "expired" | "deleted";
}

type Stored = { readonly [Scope in ConfigScope]: StoredRow | undefined };

/** A key, and what every level has for it. */
interface Situation {
  readonly scope: ConfigScope;
  readonly type: "number" | "boolean" | "select" | "text";
  readonly bounded: boolean;
  readonly fallback: unknown;
  readonly computed: unknown;
  readonly override: unknown;
  readonly rows: Stored;
  readonly caller: "user" | "colleague" | "other tenant" | "nobody";
}

const bounds = { min: -10, max: 10 };
const options = ["a", "b", ""];
const scopes = ["user", "tenant", "system"] as const;

let fixture: Fixture;
beforeAll(async () => {
  fixture = await startFixture();
});
afterAll(() => fixture.close());

test("for any values at any levels, a read gives the value and the source that section 4.1 defines", async () => {
  await fc.assert(
    fc.asyncProperty(situations(), async (situation) => {
      expect(await actual(situation)).toEqual(modelled(situation));
    }),
    { numRuns: runs(200) },
  );
});

/** Section 4.1 and design 3, as naively as they can be written. */
function modelled({ scope, type, bounded, fallback, computed, override, rows, caller }: Situation) {
  const fits = (value: unknown) =>
    type === "select"
      ? options.includes(value as string)
      : typeof value === { number: "number", boolean: "boolean", text: "string" }[type];
  const clamped = (value: unknown) =>
    bounded && typeof value === "number"
      ? Math.max(bounds.min, Math.min(bounds.max, value))
      : value;
  const reads = {
    user: caller === "user",
    tenant: caller === "user" || caller === "colleague",
    system: true,
  };
  const cascades = {
    user: ["user", "tenant", "system"],
    tenant: ["tenant", "system"],
    system: ["system"],
  };

  for (const level of scopes) {
    const row = rows[level];
    if (
      !cascades[scope].includes(level) ||
      !reads[level] ||
      row?.state !== "current" ||
      !fits(row.value)
    )
      continue;
    return { value: level === "system" ? row.value : clamped(row.value), source: `${level}-row` };
  }
  if (override !== undefined) return { value: override, source: "app-override" };
  if (computed !== undefined && fits(computed))
    return { value: scope === "system" ? computed : clamped(computed), source: "computed" };
  return { value: fallback, source: fallback === undefined ? "missing" : "default" };
}

/** The real thing: rows in the embedded store, read through `getWithSource`. */
async function actual({
  scope,
  type,
  bounded,
  fallback,
  computed,
  override,
  rows,
  caller,
}: Situation) {
  const ann = fixture.newCaller();
  const { key } = declareKeys(fixture.newFeatureName(), {
    key: untyped[scope](type, {
      ...(fallback === undefined ? {} : { default: fallback }),
      ...(computed === undefined ? {} : { computed: async () => computed }),
      ...(bounded ? { bounds } : {}),
      ...(type === "select" ? { options } : {}),
    }),
  });
  const seconds = Math.floor(fixture.app.clock.now() / 1000);
  await Promise.all(
    scopes.map(async (level) => {
      const row = rows[level];
      if (row === undefined) return;
      await fixture.app.rows.put({
        scope: level,
        tenantId: ann.tenantId,
        userId: ann.id,
        key: key.id,
        value: row.value,
        ...(row.state === "expired" ? { expiresAt: seconds - 1 } : { expiresAt: seconds + 3_600 }),
        ...(row.state === "deleted" ? { deleted: true } : {}),
      });
    }),
  );
  const owner = {
    user: ann,
    colleague: { ...ann, id: "colleague" },
    "other tenant": { ...ann, tenantId: "elsewhere" },
    nobody: {},
  }[caller];
  return fixture.read(key, owner, override === undefined ? {} : { [key.id]: override });
}

function situations(): fc.Arbitrary<Situation> {
  return fc
    .constantFrom("number", "boolean", "select", "text")
    .chain((type) => {
      const value = {
        number: fc.integer({ min: -10, max: 10 }),
        boolean: fc.boolean(),
        select: fc.constantFrom(...options),
        text: fc.string(),
      }[type];
      const anything = fc.oneof(
        { weight: 4, arbitrary: value as fc.Arbitrary<unknown> },
        fc.integer({ min: -1_000, max: 1_000 }),
        fc.constantFrom(null, "10", "true", true, "c", {}, [1]),
      );
      const row = fc.option(
        fc.record({
          value: anything,
          state: fc.constantFrom("current", "current", "current", "expired", "deleted"),
        }),
        { nil: undefined },
      );
      const optional = fc.option(value as fc.Arbitrary<unknown>, { nil: undefined });
      return fc.record({
        scope: fc.constantFrom(...scopes),
        type: fc.constant(type),
        bounded: type === "number" ? fc.boolean() : fc.constant(false),
        fallback: optional,
        computed: fc.option(anything, { nil: undefined }),
        // The two never meet: boot refuses an override of a computed key.
        override: optional,
        rows: fc.record({ user: row, tenant: row, system: row }),
        caller: fc.constantFrom("user", "user", "user", "colleague", "other tenant", "nobody"),
      });
    })
    .map((situation) =>
      situation.computed === undefined ? situation : { ...situation, override: undefined },
    );
}
