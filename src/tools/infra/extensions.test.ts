import { expect, test } from "vitest";
import { extensionOf } from "./extension.ts";
import { combined } from "./extensions.ts";

const told = (name: string) => ({ Function: { Environment: { Variables: { [name]: name } } } });
const topic = { Type: "AWS::SNS::Topic" };

test("several extensions are merged, and no extension gives an empty one", () => {
  const both = combined([
    extensionOf({ Resources: { Hat: topic }, Globals: told("HAT") }),
    extensionOf({
      Resources: { Coat: topic },
      Parameters: { Size: { Type: "String" } },
      Globals: told("COAT"),
    }),
  ]);
  expect(both.part).toEqual({
    Resources: { Hat: topic, Coat: topic },
    Parameters: { Size: { Type: "String" } },
    Conditions: {},
    Outputs: {},
  });
  expect(both.variables).toEqual({ HAT: "HAT", COAT: "COAT" });
  expect(combined([]).variables).toEqual({});
});

test("refuses a name that occurs in two extensions", () => {
  const hat = extensionOf({ Resources: { Hat: topic } });
  expect(() => combined([hat, hat])).toThrow("Resources.Hat is in two files; keep it in one");
  const variable = extensionOf({ Globals: told("HAT") });
  expect(() => combined([variable, variable])).toThrow(
    "Variables.HAT is in two files; keep it in one",
  );
});
