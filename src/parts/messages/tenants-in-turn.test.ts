import { expect, test } from "vitest";
import { tenantsInTurn } from "./tenants-in-turn.ts";

test("tenants take turns, each in its own order", () => {
  const items = ["a1", "a2", "a3", "-1", "b1", "a4", "c1", "b2"];
  const tenantOf = (item: string) => (item.startsWith("-") ? undefined : item[0]);
  expect(tenantsInTurn(items, tenantOf)).toEqual(["a1", "-1", "b1", "c1", "a2", "b2", "a3", "a4"]);
  expect(tenantsInTurn([], tenantOf)).toEqual([]);
});
