import { describe, expect, test } from "vitest";
import { everyone, idsOf, properties } from "../../../../test/support/server-templates.ts";
import { defineFeature } from "../../../app/features/feature.ts";
import { buildServer, serverInternals } from "../../../app/server/server.ts";
import { danglingReferences } from "../extension.ts";
import type { FrontName } from "../fronts.ts";
import { serverTemplate } from "../server-template.ts";
import { type Template, templateText } from "../template.ts";
import { flattened } from "./flattened.ts";
import { setReport, templateSet } from "./template-set.ts";

/** Half of the handlers are writes, in features of `perFeature` handlers with a table each. */
function featuresOf(handlers: number, perFeature = 20) {
  return Array.from({ length: Math.ceil(handlers / perFeature) }, (_, number) =>
    defineFeature(`part${number}`, (r) => {
      r.table(`rows${number}`, { partitionKey: "pk", sortKey: "sk", tenant: true });
      for (let one = 0; one < Math.min(perFeature, handlers - number * perFeature); one += 1) {
        const [name, path] = [`thing${one}.show`, `/part${number}/thing${one}`] as const;
        if (one % 2 === 0) r.query(name, { route: `GET ${path}`, ...everyone });
        else r.write(name, { route: `POST ${path}`, ...everyone });
      }
    }),
  );
}

function serverOf(handlers: number, perFeature = 20) {
  return serverInternals(
    buildServer({ features: featuresOf(handlers, perFeature), isolation: {} }),
  );
}

function setOf(
  handlers: number,
  { front = "http" as FrontName, part = "all" as const, perFeature = 20 } = {},
) {
  const server = serverOf(handlers, perFeature);
  const template = serverTemplate(server, { stage: "dev", shape: "each", front, part });
  return { template, ...templateSet(template, server, `${part}-dev`) };
}

describe.each<[number, FrontName]>([
  [100, "http"],
  [400, "http"],
  [100, "rest"],
])("%d handlers behind the front %s, each with its function", (handlers, front) => {
  const { template, parent, children } = setOf(handlers, { front });
  const all = [parent, ...[...children.values()].map((child) => child.template)];

  test("have templates within the limits of CloudFormation", () => {
    expect(Object.keys(template.Resources).length).toBeGreaterThan(handlers * 7);
    expect(children.size).toBe(handlers / 20);
    for (const one of all) {
      const text = templateText(one);
      expect(Object.keys(one.Resources).length).toBeLessThan(500);
      expect(Object.keys(one.Parameters).length).toBeLessThan(200);
      expect(Object.keys(one.Outputs).length).toBeLessThan(200);
      expect(text.length).toBeLessThan(1_000_000);
      expect(text.split("{{resolve:").length - 1).toBeLessThanOrEqual(60);
    }
    expect(setReport(template, { parent, children }).problems).toEqual([]);
  });

  test("refer only to what their own template has, and pass each parameter that a nested one takes", () => {
    for (const one of all) expect(danglingReferences(one)).toEqual([]);
    for (const id of idsOf(parent, "AWS::CloudFormation::Stack")) {
      const { TemplateURL, Parameters } = properties(parent, id);
      const child = children.get(String(TemplateURL))?.template;
      expect(Object.keys(Object(Parameters))).toEqual(Object.keys(child?.Parameters ?? {}));
      for (const name of Object.keys(child?.Parameters ?? {}))
        expect(JSON.stringify([child?.Conditions, child?.Resources, child?.Outputs])).toMatch(
          new RegExp(`"${name}"|\\$\\{${name}\\}`),
        );
    }
  });

  test("are the one template in which everything refers to the same resources", () => {
    const whole = flattened(parent, [...children.values()]).template;
    expect(inOrder(withoutOrder(whole))).toEqual(inOrder(withoutOrder(template)));
  });

  test("keep tables, bus, API and alarms in the parent, and each function with its role and log group", () => {
    const moved = Object.keys(template.Resources).filter(
      (id) => !Object.hasOwn(parent.Resources, id),
    );
    const types = new Set(moved.map((id) => template.Resources[id]?.Type));
    expect([...types].sort()).toEqual(
      [
        "AWS::IAM::Role",
        "AWS::Lambda::Function",
        "AWS::Lambda::Permission",
        "AWS::Logs::LogGroup",
        "AWS::Logs::MetricFilter",
        ...(front === "rest"
          ? ["AWS::ApiGateway::Method"]
          : ["AWS::ApiGatewayV2::Integration", "AWS::ApiGatewayV2::Route"]),
      ].sort(),
    );
    expect(idsOf(parent, "AWS::Lambda::Function")).toEqual(["HttpLambdaFunction"]);
  });
});

test("functions and log groups keep their names in nested templates", () => {
  const { template, children } = setOf(100);
  const nameIn = (one: Template, id: string) => {
    const { FunctionName, LogGroupName } = properties(one, id);
    return FunctionName ?? LogGroupName;
  };
  for (const { template: child } of children.values()) {
    const named = [
      ...idsOf(child, "AWS::Lambda::Function"),
      ...idsOf(child, "AWS::Logs::LogGroup"),
    ];
    expect(named.length).toBe(40);
    for (const id of named) expect(nameIn(child, id)).toEqual(nameIn(template, id));
    expect(child.Parameters["NamePrefix"]).toEqual(template.Parameters["NamePrefix"]);
  }
});

test("a template that CloudFormation accepts stays one template", () => {
  const { template, parent, children } = setOf(50);
  expect(Object.keys(template.Resources).length).toBeLessThan(500);
  expect([parent, children.size]).toEqual([template, 0]);
});

test("functions with more secrets than one template may read are in nested ones", () => {
  const childrenOf = (handlers: number) => {
    const server = serverInternals(buildServer({ features: featuresOf(handlers) }));
    const template = serverTemplate(server, { stage: "dev", shape: "each" });
    expect(Object.keys(template.Resources).length).toBeLessThan(500);
    const set = templateSet(template, server, "all-dev");
    expect(setReport(template, set).problems).toEqual([]);
    return [templateText(template).split("{{resolve:").length - 1, set.children.size];
  };
  expect([childrenOf(59), childrenOf(60)]).toEqual([
    [60, 0],
    [61, 3],
  ]);
});

test("a template with too many resources of other kinds stays one, which cannot be deployed", () => {
  const tables = defineFeature("many", (r) => {
    for (let one = 0; one < 501; one += 1)
      r.table(`t${one}`, { partitionKey: "pk", tenant: false });
  });
  const server = serverInternals(buildServer({ features: [tables] }));
  const template = serverTemplate(server, { stage: "dev", part: "data" });
  const set = templateSet(template, server, "data-dev");
  expect(set.children.size).toBe(0);
  expect(setReport(template, set).problems[0]).toMatch(/^it has 50\d resources/);
});

test("a feature with more functions than one template takes has several", () => {
  const { children, parent } = setOf(120, { perFeature: 120 });
  expect([...children.keys()]).toEqual([
    "all-dev.part0.json",
    "all-dev.part0.2.json",
    "all-dev.part0.3.json",
    "all-dev.part0.4.json",
  ]);
  expect(idsOf(parent, "AWS::CloudFormation::Stack")).toEqual([
    "Part0Functions",
    "Part0Functions2",
    "Part0Functions3",
    "Part0Functions4",
  ]);
});

test("a handler that is added to a feature changes the template of that feature alone", () => {
  const [before, after] = [setOf(99), setOf(100)];
  const changed = [...after.children].flatMap(([file, { template: child }]) =>
    templateText(child) === templateText(before.children.get(file)?.template ?? child)
      ? []
      : [file],
  );
  expect(changed).toEqual(["all-dev.part4.json"]);
  expect(after.parent).toEqual(before.parent);
});

/** A deployment of a REST API waits for stacks instead of their methods. */
function withoutOrder({ Parameters, Conditions, Resources, Outputs }: Template) {
  const without = Object.entries(Resources).map(([id, { DependsOn: _, ...resource }]) => [
    id,
    resource,
  ]);
  return { Parameters, Conditions, Resources: Object.fromEntries(without), Outputs };
}

const inOrder = (value: object) =>
  JSON.parse(JSON.stringify(value, (_name, inner: unknown) => sorted(inner)));
const sorted = (value: unknown) =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
    : value;
