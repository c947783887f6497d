import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse, type ScalarTag } from "yaml";
import { server } from "../../examples/files/server.ts";
import { namePrefix } from "../../src/infra/parameters.ts";
import { dataTemplate } from "../../src/infra/server-template.ts";
import type { Resource } from "../../src/infra/template.ts";
import { serverInternals } from "../../src/server/server.ts";
import { root } from "./dockerfile.ts";

// The sample's stack as people have written it, in infra/*.yml, and as `keelson infra` makes it.

const tags: ScalarTag[] = [
  { tag: "!Ref", resolve: (name) => ({ Ref: name }) },
  { tag: "!GetAtt", resolve: (path) => ({ "Fn::GetAtt": path.split(".") }) },
];

/** The resources of a file, with osls's variables as `keelson infra` has them. */
function written(file: string): Readonly<Record<string, Resource>> {
  const text = readFileSync(join(root, "infra", file), "utf8")
    .replaceAll(/\$\{self:custom.prefix\}/g, namePrefix.replace("$", "$$$$"))
    .replaceAll(/\$\{strToBool\(\$\{param:protect\}\)\}/g, "!Ref DeletionProtection")
    .replaceAll(/\$\{param:retain\}/g, "Retain");
  return parse(text, { customTags: tags }).Resources;
}

/** A resource without what may stand in either form, and without the named properties. */
function compared({ DeletionPolicy, UpdateReplacePolicy, Type, Properties }: Resource, ...without: readonly string[]) {
  const own = Object.entries(Properties).filter(([name]) => !without.includes(name));
  const names = ["TableName", "QueueName", "Name"];
  const shown = own.map(([name, value]) => [name, names.includes(name) ? nameOf(value) : value]);
  return { DeletionPolicy, UpdateReplacePolicy, Type, Properties: Object.fromEntries(shown) };
}

function nameOf(value: unknown): unknown {
  return typeof value === "object" && value !== null && "Fn::Sub" in value ? value["Fn::Sub"] : value;
}

const { Resources: generated } = dataTemplate(serverInternals(server), { stage: "dev" });
const byHand = { ...written("tables.yml"), ...written("messages.yml") };

test("the generated data part has the resources that the sample's own files have, under the same logical IDs", () => {
  expect(Object.keys(generated).sort()).toEqual(Object.keys(byHand).sort());
});

test.each(Object.keys(byHand))("%s is the same but for its encryption, which the files leave to AWS", (id) => {
  const [made, hand] = [generated[id], byHand[id]];
  if (made === undefined || hand === undefined) throw new Error(`${id} is missing`);
  const encryption = ["SSESpecification", "KmsMasterKeyId", "SqsManagedSseEnabled"];
  expect(compared(made, ...encryption)).toEqual(compared(hand));
});
