import { expect, test } from "vitest";
import { allConfigRows } from "./all-config-rows.ts";

test("reads pages until there is no next one, and treats a response without items as an empty page", async () => {
  const asked: unknown[] = [];
  const answers = [
    {
      Items: [{ pk: "config#system", sk: "app:config:a", value: 5, version: 1 }],
      ScannedCount: 3,
      LastEvaluatedKey: { pk: "p", sk: "s" },
    },
    {},
  ];
  const send = async ({ input }: { readonly input: { readonly ExclusiveStartKey?: unknown } }) => {
    asked.push(input.ExclusiveStartKey);
    return answers[asked.length - 1];
  };

  const pages: unknown[] = [];
  for await (const page of allConfigRows({ send } as never, "config")) pages.push(page);
  expect(pages).toEqual([
    {
      rows: [
        {
          address: { partition: "config#system", key: "app:config:a" },
          row: { value: 5, version: 1 },
        },
      ],
      scanned: 3,
    },
    { rows: [], scanned: 0 },
  ]);
  expect(asked).toEqual([undefined, { pk: "p", sk: "s" }]);
});
