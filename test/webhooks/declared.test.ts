import {
  type BootError,
  buildServer,
  createSystemConfig,
  createTenantConfig,
  defineFeature,
} from "keelson";
import { github, stripe } from "keelson/webhooks";
import { expect, test } from "vitest";
import { serverDocument } from "../../src/app/routes/openapi-document.ts";
import { serverInternals } from "../../src/app/server/server.ts";
import { contractOf } from "../../src/tools/contract/contract.ts";
import { contractChanges } from "../../src/tools/contract/contract-changes.ts";
import { hooks } from "./fixture.ts";

const sound = {
  route: "POST /hooks",
  verify: () => true,
  tenant: () => "acme",
  handler: async () => undefined,
};

function problemsOf(options: unknown): string[] {
  const wrong = defineFeature("wrong", (r) => void r.webhook("a.b", options as never));
  try {
    buildServer({ features: [wrong, keys] });
  } catch (error) {
    const { problems } = error as BootError; // safe: buildServer throws nothing else
    return problems.map(({ rule, message }) => `${rule}: ${message}`);
  }
  return [];
}

const keys = defineFeature("keys", (r) =>
  r.config({ keys: { secret: createTenantConfig("text", {}) } }),
);

test.each<[string, Record<string, unknown>, readonly string[]]>([
  ["everything that is required", {}, []],
  ["a parameter of the path", { route: "POST /h/:t", tenant: { param: "t" } }, []],
  [
    "no `verify`",
    { verify: undefined },
    ["webhook-verify: `verify` is neither a preset nor a function"],
  ],
  [
    "a preset without a secret",
    { verify: stripe({ secret: [] }) },
    ["webhook-verify: `verify` has a wrong preset: `secret` is a list of 0; pass 1 to 10"],
  ],
  [
    "a preset with an unknown option",
    { verify: stripe({ secret: "s", tolerance: 600 } as never) },
    ['webhook-verify: `verify` has a wrong preset: unknown option "tolerance"'],
  ],
  [
    "an unknown option next to `param`",
    { route: "POST /h/:t", tenant: { param: "t", optional: true } },
    ['unknown-option: unknown option "optional"'],
  ],
  ["no tenant", { tenant: undefined }, ["webhook-tenant: `tenant` is neither a function nor"]],
  [
    "a parameter that the path lacks",
    { tenant: { param: "t" } },
    ["webhook-tenant: `tenant` is neither a function nor a parameter of the route"],
  ],
  [
    "a tenant's own secret, and the tenant in the event",
    { verify: stripe({ secret: keys.secret }) },
    ["webhook-tenant: `tenant` is read from the body, but the secret is the tenant's own"],
  ],
  [
    "a tenant's own secret, and the tenant in the path",
    { verify: stripe({ secret: keys.secret }), route: "POST /h/:t", tenant: { param: "t" } },
    [],
  ],
  ["an ID that is no function", { id: "id" }, ["webhook-id: `id` is not a function"]],
  ["no route", { route: undefined }, ['route: route "" is not "<METHOD> /<path>"']],
  ["a GET", { route: "GET /h" }, ["route-method: a write cannot be GET"]],
  ["an access rule", { access: 1 }, ['unknown-option: unknown option "access"']],
  ["no handler", { handler: undefined }, ["handler: `handler`"]],
])("a webhook with %s", (_what, options, problems) => {
  const found = problemsOf({ ...sound, ...options });
  expect(found).toHaveLength(problems.length);
  for (const [index, problem] of problems.entries()) expect(found[index]).toContain(problem);
});

test("a webhook with no options at all does not boot", () => {
  expect(problemsOf(undefined).map((text) => text.split(":")[0])).toEqual(
    expect.arrayContaining(["webhook-verify", "webhook-tenant", "handler"]),
  );
});

test("a secret that is a key of no feature of the server does not boot", () => {
  const declaring = (name: string) =>
    defineFeature(name, (r) => r.config({ keys: { secret: createSystemConfig("text", {}) } }));
  const [own, other] = [declaring("own"), declaring("other")];
  const verify = github({ secret: ["code", own.secret, other.secret] });
  const features = [own, defineFeature("hook", (r) => r.webhook("a.b", { ...sound, verify }))];
  expect(() => buildServer({ features })).toThrow(
    expect.objectContaining({
      problems: [
        expect.objectContaining({
          key: "hook.a.b: verify",
          rule: "secret-key",
          message: '"other:config:secret" is not a text key of this server',
        }),
      ],
    }),
  );
  expect(() => buildServer({ features: [...features, other] })).not.toThrow();
});

interface Operation {
  readonly parameters: readonly unknown[];
  readonly responses: Readonly<Record<string, unknown>>;
}

const server = buildServer({ features: [hooks] });

test("OpenAPI describes the body, the headers of the signature and the answers", async () => {
  const { document } = await serverDocument(serverInternals(server), import.meta.dirname);
  const paths = document["paths"] as Readonly<Record<string, { readonly post: Operation }>>; // safe: the document is OpenAPI
  const { post } = paths["/hooks/stripe"] ?? {};
  expect(post).toMatchObject({
    description: "For the sender of the webhook, who signs each request.",
    security: [{}],
    "x-keelson-access": "signature",
    requestBody: { required: true },
  });
  expect(JSON.stringify(post?.parameters)).toContain(
    '"stripe-signature","in":"header","required":true',
  );
  expect(JSON.stringify(post?.parameters)).not.toContain("Idempotency-Key");
  expect(Object.keys(post?.responses ?? {})).toEqual(
    expect.arrayContaining(["200", "204", "401", "409"]),
  );
  expect(JSON.stringify(post?.responses["401"])).toContain("SignatureInvalid");
  const own = paths["/hooks/own/{tenant}"]?.post;
  expect(own?.parameters[0]).toMatchObject({ name: "tenant", in: "path" });
  expect(Object.keys(paths["/hooks/slack"]?.post.responses ?? {})).toEqual(
    expect.arrayContaining(["200", "202", "204"]),
  );
});

test("the contract locks who signs, and another scheme breaks it", async () => {
  const { contract } = await contractOf(serverInternals(server), import.meta.dirname);
  const signed = Object.fromEntries(contract.routes.map(({ path, signed }) => [path, signed]));
  expect(signed).toMatchObject({ "/hooks/stripe": "stripe", "/hooks/list": "function" });
  const routes = contract.routes.map(({ signed: _, ...route }) => route);
  const changes = contractChanges(contract, { ...contract, routes });
  expect(changes).toHaveLength(8);
  expect(changes[0]).toMatchObject({ breaks: "client", rule: "signature-changed" });
});
