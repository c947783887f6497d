import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { crashEverywhere, type TestApp } from "keelson/testing";
import { expect, test } from "vitest";
import { server } from "../../examples/files/server.ts";

const ann = { id: "ann", tenantId: "acme" };

test("Wherever a process crashes between POST /files and its message: one file, one scan, one delivery, counted once", async () => {
  const create = (app: TestApp) =>
    app.fetch("/files", {
      body: { name: "a.txt", sizeMb: 1 },
      as: ann,
      headers: { "idempotency-key": "crash-kit" },
    });
  const cuts = await crashEverywhere(server, {
    act: async (app) => {
      const answer = await create(app);
      await app.settled();
      return answer;
    },
    check: async (app, answer) => {
      const created = (await answer.json()) as { id: string };
      const ctx = await app.ctx({ ...ann, roles: ["systemAdmin"] });
      const { Items = [] } = await ctx
        .acrossTenants("whatever was written")
        .send(new ScanCommand({ TableName: "keelson-files", ConsistentRead: true }));
      const rows = Object.fromEntries(Items.map((item) => [item["pk"], item]));
      expect([Items.length, rows]).toEqual([
        3,
        {
          "acme/files": expect.objectContaining({ id: created.id, scans: 1 }),
          "acme/names": expect.objectContaining({ id: created.id, name: "a.txt" }),
          "acme/files.usage@1/total": expect.objectContaining({ usedMb: 1 }),
        },
      ]);
      expect([app.events.length, app.jobs.length]).toEqual([1, 1]);
      expect(app.deliveries).toEqual([
        expect.objectContaining({ message: { text: "the file was scanned", file: created.id } }),
      ]);
    },
  });
  expect(cuts.map(({ moment, operation }) => `${moment} ${operation}`)).toEqual(
    expect.arrayContaining([
      "after PutEvents",
      "before SendMessage",
      "after SendMessage",
      "before DeleteMessage",
    ]),
  );
}, 400_000);
