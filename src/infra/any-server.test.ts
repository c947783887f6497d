import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { everyone, idsOf, sheds, statementsOf, templateOf } from "../../test/support/server-templates.ts";
import { createTenantConfig } from "../config/declare/declaration.ts";
import { defineFeature, type Feature } from "../declare/feature.ts";
import { danglingReferences } from "./references.ts";
import type { ServerPart } from "./server-template.ts";
import { templateText } from "./template.ts";

declare module "../context/names.ts" {
  interface Events {
    "spade.dug": Record<string, never>;
  }
}

test("any server's template has what it refers to, allows nothing too wide, and is the same each time", () => {
  const features = fc
    .subarray(["table", "event", "consumer", "job", "channel", "schedule", "query", "write", "config", "uses"])
    .map((given) => [sheds, featureOf(new Set(given))]);
  const server = fc.record(
    {
      ssm: fc.constant({ path: "/p" }),
      keyRing: fc.constant({ parameter: "/ring" }),
      basePath: fc.constant("/api"),
      auth: fc.constant({ jwks: "https://id.example.com/keys", audience: "a" }),
    },
    { requiredKeys: [] },
  );
  const options = fc.record({
    part: fc.constantFrom<ServerPart[]>("data", "functions", "all"),
    shape: fc.constantFrom("one" as const, "each" as const),
  });
  fc.assert(
    fc.property(features, server, options, (given, of, how) => {
      const template = templateOf(given, how, of);
      expect(danglingReferences(template)).toEqual([]);
      expect(templateText(templateOf(given, how, of))).toBe(templateText(template));
      expect(JSON.parse(templateText(template))).toEqual(template);
      for (const role of idsOf(template, "AWS::IAM::Role")) {
        const statements = statementsOf(template, role);
        expect(new Set(statements.map(({ Sid }) => Sid)).size).toBe(statements.length);
        for (const { Action, Resource } of statements) {
          expect(Action.filter((action) => /\*|Scan|PartiQL/.test(action))).toEqual([]);
          expect([Action.length > 0, Resource.length > 0, Resource.includes("*")]).toEqual([true, true, false]);
        }
      }
    }),
    { numRuns: 150 },
  );
});

function featureOf(has: ReadonlySet<string>): Feature {
  return defineFeature(
    "garden",
    (r) => {
      if (has.has("table")) r.table("beds", { partitionKey: "pk", indexes: { byRow: { partitionKey: "row" } } });
      if (has.has("event") || has.has("consumer")) r.event("spade.dug", z.object({}));
      if (has.has("consumer")) r.on("spade.dug", "rest", async () => undefined);
      if (has.has("job")) r.job("bed.water", { input: z.object({}), handler: async () => undefined });
      if (has.has("channel")) r.channel("pigeon", { input: z.object({}), send: async () => undefined });
      if (has.has("schedule")) r.schedule("bed.count", { cron: "0 3 * * *", handler: async () => undefined });
      if (has.has("query")) r.query("bed.show", { route: "GET /beds/:id", ...everyone });
      if (has.has("write")) r.write("bed.dig", { route: "POST /beds", ...everyone });
      if (has.has("config")) r.config({ keys: { most: createTenantConfig("number", {}) } });
    },
    has.has("uses") ? { uses: { sheds: "write" } } : {},
  );
}
