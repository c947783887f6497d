import { expect, test } from "vitest";
import { github, hmac, slack, standardWebhooks, stripe } from "./presets.ts";
import { isOfTenant } from "./scheme.ts";

const key = (type: string, scope: string) => ({ id: "a:config:b", definition: { type, scope } });

test.each<[unknown, string | undefined]>([
  ["s", undefined],
  [["new", "old"], undefined],
  [key("text", "system"), undefined],
  [["new", key("text", "tenant")], undefined],
  [[], "`secret` is a list of 0; pass 1 to 10"],
  [Array.from({ length: 11 }, () => "s"), "`secret` is a list of 11; pass 1 to 10"],
  ["", "neither a string nor the handle"],
  [undefined, "neither a string nor the handle"],
  [7, "neither a string nor the handle"],
  ["s".repeat(1_025), "neither a string nor the handle"],
  [key("number", "system"), "neither a string nor the handle"],
  [key("text", "user"), "neither a string nor the handle"],
  [{ id: 1 }, "neither a string nor the handle"],
  [null, "neither a string nor the handle"],
])("the secret %j has the problem %j", (secret, problem) => {
  const made = stripe({ secret: secret as never });
  if (problem === undefined) expect(made.problem).toBeUndefined();
  else expect(made.problem).toContain(problem);
});

test.each<[Record<string, unknown>, string | undefined]>([
  [{ header: "X-A" }, undefined],
  [{ header: "X-A", prefix: "", encoding: "base64" }, undefined],
  [{ header: "X-A", prefix: "a=" }, undefined],
  [{}, "`header` is not the name of a header"],
  [{ header: "a b" }, "`header` is not the name of a header"],
  [{ header: "X-A", prefix: 7 }, "`prefix` is not a string"],
  [{ header: "X-A", encoding: "utf8" }, "`encoding` is neither hex nor base64"],
  [
    { header: "X-A", encodng: "base64" },
    'unknown option "encodng"; did you mean `encoding`? known are secret, header, prefix, encoding',
  ],
])("hmac with %j has the problem %j", (form, problem) => {
  expect(hmac({ secret: "s", ...form } as never).problem).toBe(problem);
});

test("every preset has a problem with an unknown option", () => {
  for (const preset of [stripe, standardWebhooks, github, slack])
    expect(preset({ secret: "s", header: "X-A" } as never).problem).toBe(
      'unknown option "header"; known are secret',
    );
});

test("no problem shows a secret, and presets without options have one", () => {
  const secret = `whsec_${"x".repeat(1_025)}`;
  expect(stripe({ secret }).problem).not.toContain("xx");
  expect(stripe(secret as never).problem).not.toContain("xx");
  expect(github(undefined as never).problem).toBeDefined();
  expect(hmac(undefined as never).problem).toBeDefined();
});

test("a scheme is frozen, and knows whether its secret is a tenant's own", () => {
  expect(Object.isFrozen(stripe({ secret: "s" }))).toBe(true);
  expect(isOfTenant(stripe({ secret: ["s", key("text", "tenant")] as never }))).toBe(true);
  expect(isOfTenant(stripe({ secret: key("text", "system") as never }))).toBe(false);
  expect(isOfTenant(stripe({ secret: null as never }))).toBe(false);
  expect(isOfTenant(() => true)).toBe(false);
});
