import { expect, test } from "vitest";
import { z } from "zod";
import { startTestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import type { FeatureBuilder } from "../features/feature-builder.ts";
import { buildServer } from "../server/server.ts";

async function warnedOf(declare: (r: FeatureBuilder) => void): Promise<unknown[]> {
  const app = await startTestApp(buildServer({ features: [defineFeature("items", declare)] }));
  try {
    return app.logs
      .filter(({ msg }) => msg === "output.loose")
      .map(({ level, handlers }) => [level, handlers]);
  } finally {
    await app.close();
  }
}

test("a starting server names the handlers whose output schema removes no fields, and where", async () => {
  const handler = () => ({ a: {} });
  const named = await warnedOf((r) => {
    r.query("item.loose", { output: z.looseObject({}), handler });
    r.write("item.inside", { output: z.object({ a: z.looseObject({}) }), handler });
    r.query("item.shut", { output: z.object({ a: z.object({}) }), handler });
    r.query("item.none", { handler });
  });

  expect(named).toEqual([
    [
      "warn",
      [
        { name: "items.item.loose", at: "result" },
        { name: "items.item.inside", at: "a" },
      ],
    ],
  ]);
});

test("many handlers are named in several lines, and none in no line", async () => {
  const many = await warnedOf((r) => {
    for (let index = 0; index < 250; index++)
      r.query(`item.show-${index}`, { output: z.looseObject({}), handler: () => ({}) });
  });

  expect(many).toEqual(
    [100, 100, 50].map((length) => [
      "warn",
      expect.toSatisfy((names: unknown[]) => names.length === length),
    ]),
  );
  expect(await warnedOf((r) => r.query("item.none", { handler: () => 1 }))).toEqual([]);
});
