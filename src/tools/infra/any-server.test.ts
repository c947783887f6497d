import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { runs } from "../../../test/support/runs.ts";
import {
  everyone,
  idsOf,
  sheds,
  statementsOf,
  templateOf,
} from "../../../test/support/server-templates.ts";
import { defineFeature, type Feature } from "../../app/features/feature.ts";
import { createTenantConfig } from "../../parts/config/declare/declaration.ts";
import { danglingReferences } from "./extension.ts";
import { dividedFronts, frontNames } from "./fronts.ts";
import type { ServerPart } from "./server-template.ts";
import { type Template, templateText } from "./template.ts";

declare module "../../base/types/names.ts" {
  interface Events {
    "spade.dug": Record<string, never>;
  }
}

test("any server's template refers only to existing names, grants nothing too broad, and is deterministic", () => {
  const features = fc
    .subarray([
      "table",
      "event",
      "consumer",
      "job",
      "channel",
      "schedule",
      "receiver",
      "query",
      "write",
      "config",
      "uses",
      "tenant",
    ])
    .map((given) => [sheds, featureOf(new Set(given))]);
  const server = fc.record(
    {
      ssm: fc.constant({ path: "/p" }),
      keyRing: fc.constant({ parameter: "/ring" }),
      basePath: fc.constant("/api"),
      isolation: fc.constant({}),
      auth: fc.constant({ jwks: "https://id.example.com/keys", audience: "a" }),
    },
    { requiredKeys: [] },
  );
  const options = fc
    .record({
      part: fc.constantFrom<ServerPart[]>("data", "functions", "all"),
      shape: fc.constantFrom("one" as const, "each" as const),
      front: fc.constantFrom(...frontNames),
      stream: fc.boolean(),
    })
    .filter(({ shape, front }) => shape === "one" || dividedFronts.includes(front));
  fc.assert(
    fc.property(features, server, options, (given, of, how) => {
      const template = templateOf(given, how, of);
      expect(danglingReferences(template)).toEqual([]);
      expect(unusedNames(template)).toEqual([]);
      expect(circleOf(template)).toBeUndefined();
      expect(templateText(templateOf(given, how, of))).toBe(templateText(template));
      expect(JSON.parse(templateText(template))).toEqual(template);
      for (const role of idsOf(template, "AWS::IAM::Role")) {
        const statements = statementsOf(template, role);
        expect(new Set(statements.map(({ Sid }) => Sid)).size).toBe(statements.length);
        for (const { Action, Resource, Condition } of statements) {
          // Sessions for every tenant of a table scan it, as ctx.acrossTenants does.
          const isAcross = JSON.stringify(Condition ?? {}).includes("aws:PrincipalTag/across");
          expect(
            Action.filter(
              (action) =>
                /\*|Scan|PartiQL/.test(action) && !(isAcross && action === "dynamodb:Scan"),
            ),
          ).toEqual([]);
          expect([Action.length > 0, Resource.length > 0, Resource.includes("*")]).toEqual([
            true,
            true,
            false,
          ]);
        }
      }
    }),
    { numRuns: runs(200) },
  );
});

/** Parameters and conditions that nothing refers to: a lint of CloudFormation fails for them. */
function unusedNames(template: Template): string[] {
  const { Parameters, Conditions, Mappings = {}, Resources, Outputs } = template;
  const text = JSON.stringify([Conditions, Resources, Outputs]);
  const uses = (name: string) =>
    [`"Ref":"${name}"`, `\${${name}}`].some((one) => text.includes(one));
  const asks = (name: string) =>
    [`"Fn::If":["${name}"`, `"Condition":"${name}"`].some((one) => text.includes(one));
  return [
    ...Object.keys(Parameters).filter((name) => !uses(name)),
    ...Object.keys(Conditions).filter((name) => !asks(name)),
    ...Object.keys(Mappings).filter((name) => !text.includes(`"Fn::FindInMap":["${name}"`)),
  ];
}

/** Resources of which each needs the next, the last the first: CloudFormation makes none of them. */
function circleOf({ Resources }: Template): string[] | undefined {
  const ids = Object.keys(Resources);
  const needed = new Map(
    ids.map((id) => {
      const text = JSON.stringify(Resources[id]);
      return [
        id,
        ids.filter((other) =>
          [
            `"DependsOn":"${other}"`,
            `"Ref":"${other}"`,
            `["${other}",`,
            `\${${other}}`,
            `\${${other}.`,
          ].some((one) => text.includes(one)),
        ),
      ];
    }),
  );
  const done = new Set<string>();
  const walk = (id: string, path: readonly string[]): string[] | undefined => {
    if (path.includes(id)) return [...path, id];
    if (done.has(id)) return undefined;
    const found = (needed.get(id) ?? [])
      .map((other) => walk(other, [...path, id]))
      .find((circle) => circle !== undefined);
    done.add(id);
    return found;
  };
  return ids.map((id) => walk(id, [])).find((circle) => circle !== undefined);
}

function featureOf(has: ReadonlySet<string>): Feature {
  return defineFeature(
    "garden",
    (r) => {
      if (has.has("table"))
        r.table("beds", {
          partitionKey: "pk",
          indexes: { byRow: { partitionKey: "row" } },
          tenant: false,
        });
      if (has.has("tenant")) r.table("plots", { partitionKey: "pk", sortKey: "sk", tenant: true });
      if (has.has("event") || has.has("consumer")) r.event("spade.dug", z.object({}));
      if (has.has("consumer")) r.on("spade.dug", { name: "rest", handler: async () => undefined });
      if (has.has("job"))
        r.job("bed.water", { input: z.object({}), handler: async () => undefined });
      if (has.has("channel"))
        r.channel("pigeon", { input: z.object({}), send: async () => undefined });
      if (has.has("schedule"))
        r.schedule("bed.count", { cron: "0 3 * * *", handler: async () => undefined });
      if (has.has("receiver"))
        r.receive("bed.flooded", {
          ...{ source: "aws.iot", detailType: "Flood" },
          input: z.object({}),
          handler: async () => undefined,
        });
      if (has.has("query")) r.query("bed.show", { route: "GET /beds/:id", ...everyone });
      if (has.has("write")) r.write("bed.dig", { route: "POST /beds", ...everyone });
      if (has.has("config")) r.config({ keys: { most: createTenantConfig("number", {}) } });
    },
    has.has("uses") ? { uses: { sheds: "write" } } : {},
  );
}
