import { describe, expect, test } from "vitest";
import { everyone } from "../../../../test/support/server-templates.ts";
import { defineFeature } from "../../../app/features/feature.ts";
import { buildServer, serverInternals } from "../../../app/server/server.ts";
import type { FrontName } from "../fronts.ts";
import { serverTemplate } from "../server-template.ts";
import { type Flattened, flattened } from "./flattened.ts";
import { functionGroups } from "./groups.ts";
import { moves } from "./moves.ts";
import { nestedTemplates } from "./nested-templates.ts";

/** The templates of a server whose features have these routes, each with its handler. */
function stacksOf(routes: Readonly<Record<string, readonly string[]>>, front: FrontName = "http") {
  const features = Object.entries(routes).map(([name, paths]) =>
    defineFeature(name, (r) => {
      for (const path of paths) r.query(`${path}.show`, { route: `GET /${path}`, ...everyone });
    }),
  );
  const server = serverInternals(buildServer({ features }));
  const template = serverTemplate(server, { stage: "dev", shape: "each", front });
  const set = nestedTemplates(template, functionGroups(server), ({ name }) => `${name}.json`);
  return {
    one: flattened(template, []),
    nested: flattened(set.parent, [...set.children.values()]),
  };
}

test("functions and routes that change their stack are named, because the old stack still has them", () => {
  const { one, nested } = stacksOf({ left: ["apples", "pears"], right: ["plums"] });
  expect(moves(nested, nested)).toEqual([]);
  expect(moves(one, nested)).toEqual([
    {
      isDangerous: true,
      text: expect.stringMatching(
        /^functions or routes move to another stack, .* deploy with --shape one first, then this template: LeftApplesShowLambdaFunction, /,
      ),
    },
  ]);
});

test("an own resource that moves is named, because a new one replaces it", () => {
  const { one, nested } = stacksOf({ left: ["apples"], right: ["plums"] });
  const withKey = ({ template, stacks }: Flattened, stack?: string): Flattened => ({
    template: { ...template, Resources: { ...template.Resources, Key: { Type: "AWS::KMS::Key" } } },
    stacks: stack === undefined ? stacks : new Map([...stacks, ["Key", stack]]),
  });
  const after = withKey(nested, "LeftFunctions");
  expect(moves(nested, after)).toEqual([]);
  expect(moves(withKey(nested), after)).toEqual([
    {
      isDangerous: true,
      text: expect.stringMatching(/^resources move to another stack, .*: Key \(AWS::KMS::Key\)$/),
    },
  ]);
  expect(moves(withKey(one), after)).toHaveLength(2);
});

describe.each<[FrontName, string]>([
  ["http", "HttpApiRouteGetApples, HttpApiRouteHeadApples"],
  ["rest", "RestApiMethodApplesGET, RestApiMethodApplesHEAD"],
])("behind the front %s", (front, ids) => {
  const text = expect.stringMatching(new RegExp(`, then this template: ${ids}$`));

  test("a route that another feature takes over is named, although its function is a new one", () => {
    const before = stacksOf({ left: ["apples", "pears"], right: ["plums"] }, front).nested;
    const after = stacksOf({ left: ["pears"], right: ["plums", "apples"] }, front).nested;
    expect(moves(before, after)).toEqual([{ isDangerous: true, text }]);
  });

  test("the routes of a feature with a new name are named", () => {
    const before = stacksOf({ left: ["apples"], right: ["plums"] }, front).nested;
    const after = stacksOf({ fruits: ["apples"], right: ["plums"] }, front).nested;
    expect(moves(before, after)).toEqual([{ isDangerous: true, text }]);
  });
});
