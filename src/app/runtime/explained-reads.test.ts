import { parseList } from "structured-headers";
import { expect, test } from "vitest";
import { createExplainedReads } from "./explained-reads.ts";

const operator = { id: "ann", tenantId: "acme", roles: ["systemAdmin"], kind: "user" as const };
const own = { tenantId: "acme", userId: "ann" };

test("a header is bounded and states the number of omitted reads", () => {
  for (const count of [90, 1_500]) {
    const reads = createExplainedReads();
    for (let index = 0; index < count; index += 1)
      reads.note(own, `long:config:${"k".repeat(40)}-${index}`, "default", index);
    const headers: Record<string, string> = {};
    reads.addTo(headers, operator);

    const text = String(headers["x-keelson-config"]);
    const members = parseList(text);
    expect(text.length).toBeLessThanOrEqual(4_096);
    expect(members.at(-1)?.[0]).toMatchObject({ value: "truncated" });
    expect(Number(members.at(-1)?.[1].get("left-out")) + members.length - 1).toBe(count);
  }
});

test("a read for another tenant or user is marked as such", () => {
  const reads = createExplainedReads();
  reads.note(own, "ops:config:size", "tenant-row", 2);
  reads.note({ tenantId: "globex", userId: undefined }, "ops:config:size", "tenant-row", 7);
  reads.note({ tenantId: "acme", userId: "bob" }, "ops:config:size", "default", undefined);
  const headers = {};
  reads.addTo(headers, operator);

  expect(headers).toEqual({
    "x-keelson-config":
      "ops:config:size;source=tenant-row;version=2, ops:config:size;source=tenant-row;version=7;other-owner, ops:config:size;source=default;other-owner",
    "cache-control": "no-store",
  });
});

test("the last of several reads of a key counts", () => {
  const reads = createExplainedReads();
  for (let index = 0; index < 1_000; index += 1)
    reads.note(own, `k:config:${index}`, "default", undefined);
  reads.note(own, "k:config:0", "tenant-row", 1);
  const headers: Record<string, string> = {};
  reads.addTo(headers, operator);

  expect(headers["x-keelson-config"]).toMatch(/^k:config:0;source=tenant-row;version=1, /);
});
