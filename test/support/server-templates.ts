// biome-ignore-all lint/suspicious/noTemplateCurlyInString: CloudFormation's own placeholders
import { z } from "zod";
import { defineFeature, type Feature } from "../../src/app/features/feature.ts";
import { buildServer, serverInternals } from "../../src/app/server/server.ts";
import { access } from "../../src/base/identity/access.ts";
import { createTenantConfig } from "../../src/parts/config/declare/declaration.ts";
import { serverTemplate } from "../../src/tools/infra/server-template.ts";
import type { Template } from "../../src/tools/infra/template.ts";

declare module "../../src/base/types/names.ts" {
  interface Events {
    "spade.dug": Record<string, never>;
  }
}

export const everyone = { access: access.everyone, handler: async () => 1 };
export const spades = defineFeature(
  "spades",
  (r) => {
    r.config({ keys: { most: createTenantConfig("number", {}) } });
    r.table("spades", {
      partitionKey: "pk",
      indexes: {
        byOwner: { partitionKey: "owner" },
        byAge: { partitionKey: "age", sortKey: "pk" },
      },
      tenant: false,
    });
    r.event("spade.dug", z.object({}));
    r.on("spade.dug", { name: "rest", handler: async () => undefined });
    r.query("spade.list", { route: "GET /spades", ...everyone });
    r.write("spade.dig", { route: "POST /spades/:id/dig", ...everyone });
    r.schedule("spade.count", { cron: "0 3 * * *", handler: async () => undefined });
  },
  { uses: { sheds: "read" } },
);
export const sheds = defineFeature(
  "sheds",
  (r) => void r.table("sheds", { partitionKey: "pk", tenant: false }),
);
export const quiet = defineFeature(
  "quiet",
  (r) => void r.query("quiet.ask", { route: "GET /quiet", ...everyone }),
);
export const parameters = {
  ssm: { path: "/garden/config" },
  keyRing: { parameter: "garden-ring" },
};

export type Options = Partial<Parameters<typeof serverTemplate>[1]>;
export function templateOf(
  features: readonly Feature[],
  options: Options = {},
  server: object = parameters,
): Template {
  return serverTemplate(serverInternals(buildServer({ features, ...server })), {
    stage: "dev",
    ...options,
  });
}
export const properties = (template: Template, id: string) =>
  template.Resources[id]?.Properties ?? {};
export const idsOf = (template: Template, type: string) =>
  Object.entries(template.Resources).flatMap(([id, { Type }]) => (Type === type ? [id] : []));

export interface Statement {
  readonly Sid: string;
  readonly Effect: string;
  readonly Action: readonly string[];
  readonly Resource: readonly unknown[];
  readonly Condition?: object;
}

/** The statements of a role, with that for a customer's key. */
export function statementsOf(template: Template, role: string): Statement[] {
  // Safe: every role is written by `functionParts`.
  const [{ PolicyDocument }] = properties(template, role)["Policies"] as [
    {
      readonly PolicyDocument: {
        readonly Statement: (Statement | { readonly "Fn::If": [string, Statement, object] })[];
      };
    },
  ];
  return PolicyDocument.Statement.map((one) => ("Fn::If" in one ? one["Fn::If"][1] : one));
}
export const sids = (template: Template, role: string) =>
  statementsOf(template, role).map(({ Sid }) => Sid);
export const statement = (template: Template, role: string, sid: string) =>
  statementsOf(template, role).find(({ Sid }) => Sid === sid);
export const arn = (id: string) => ({ "Fn::GetAtt": [id, "Arn"] });
export const sub = (text: string) => ({ "Fn::Sub": text });
export const account = "${AWS::Region}:${AWS::AccountId}";
