import { makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { BasePersistenceLayer } from "@aws-lambda-powertools/idempotency/persistence";
import { expect, test } from "vitest";
import { ClaimLayer as FromMiddy } from "../middy/middy.ts";
import * as entry from "./index.ts";
import { loadedClaimLayer } from "./loaded-claim-layer.ts";

test("keelson/middy's ClaimLayer behaves like that of keelson/claim-layer, and can be extended", () => {
  class Layer extends FromMiddy {
    readonly own = true;
  }

  expect(new FromMiddy({ tableName: "claims" })).toBeInstanceOf(BasePersistenceLayer);
  expect(new Layer({ tableName: "claims" })).toMatchObject({ own: true });
  expect(new Layer({ tableName: "claims" })).toBeInstanceOf(FromMiddy);
  expect(() => new FromMiddy({ tableName: "" })).toThrow(TypeError);
  expect(
    makeIdempotent(async () => 1, { persistenceStore: new FromMiddy({ tableName: "claims" }) }),
  ).toBeTypeOf("function");
});

test("the implementation is loaded on first use", () => {
  let loads = 0;
  const Layer = loadedClaimLayer(() => {
    loads += 1;
    return entry;
  });

  expect(loads).toBe(0);
  expect(new Layer({ tableName: "claims" })).toBeInstanceOf(entry.ClaimLayer);
  expect(loads).toBeGreaterThan(0);
});
