import { crashEverywhere, type TestApp, type TestFetchOptions } from "keelson/testing";
import { describe, expect, test } from "vitest";
import { server } from "../../examples/files/server.ts";

const ann = { id: "ann", tenantId: "acme", roles: ["admin", "systemAdmin"] };
const key = { "idempotency-key": "crash-kit" };

interface FileItem {
  readonly id: string;
  readonly name: string;
}

async function filesOf(app: TestApp): Promise<FileItem[]> {
  const { items } = (await (await app.fetch("/files", { as: ann })).json()) as {
    items: FileItem[];
  };
  return items;
}

async function historyOf(
  app: TestApp,
  id: string,
): Promise<{ action: string; value: unknown; version: number }[]> {
  const answer = await app.fetch(`/config/${encodeURIComponent(id)}/history`, { as: ann });
  return ((await answer.json()) as { items: { action: string; value: unknown; version: number }[] })
    .items;
}

const write = (app: TestApp, path: string, options: TestFetchOptions) =>
  app.fetch(path, { ...options, as: ann, headers: { ...key, ...options.headers } });
const limit = "files:config:max-upload-size-mb";
const limitPath = `/config/${encodeURIComponent(limit)}`;

describe("wherever a process crashes, a write of the sample is done exactly once", () => {
  test("POST /files", async () => {
    const create = (app: TestApp) => write(app, "/files", { body: { name: "a.txt", sizeMb: 1 } });
    const cuts = await crashEverywhere(server, {
      act: create,
      check: async (app, answer) => {
        expect(answer.status).toBe(201);
        const created = (await answer.json()) as FileItem;
        expect(await filesOf(app)).toEqual([expect.objectContaining(created)]);
        expect(await (await create(app)).json()).toEqual(created);
        expect(await filesOf(app)).toHaveLength(1);
      },
    });
    expect(cuts.map(({ moment, operation }) => `${moment} ${operation}`)).toEqual(
      expect.arrayContaining([
        "before PutItem",
        "after PutItem",
        "before TransactWriteItems",
        "after TransactWriteItems",
      ]),
    );
  });

  test("DELETE /files/:id", async () => {
    let id = "";
    await crashEverywhere(server, {
      arrange: async (app) => {
        const made = await app.fetch("/files", { body: { name: "b.txt", sizeMb: 1 }, as: ann });
        ({ id } = (await made.json()) as FileItem);
      },
      act: (app) => write(app, `/files/${id}`, { method: "DELETE" }),
      check: async (app, answer) => {
        expect(answer.status).toBe(204);
        expect(await filesOf(app)).toEqual([]);
      },
    });
  });

  test("PUT /config/:key", async () => {
    await crashEverywhere(server, {
      act: (app) =>
        write(app, limitPath, { method: "PUT", body: { value: 20, reason: "crash kit" } }),
      check: async (app, answer) => {
        expect([answer.status, await answer.json()]).toMatchObject([
          200,
          { value: 20, version: 1 },
        ]);
        expect(await historyOf(app, limit)).toMatchObject([{ value: 20, version: 1 }]);
      },
    });
  });

  test("DELETE /config/:key and its undo", async () => {
    const set = (app: TestApp) =>
      app.fetch(limitPath, { method: "PUT", body: { value: 20 }, as: ann });
    await crashEverywhere(server, {
      arrange: async (app) => void (await set(app)),
      act: (app) => write(app, limitPath, { method: "DELETE" }),
      check: async (app, answer) => {
        expect(answer.status).toBe(200);
        expect(await historyOf(app, limit)).toHaveLength(2);
      },
    });
    await crashEverywhere(server, {
      arrange: async (app) => {
        await set(app);
        await app.fetch(limitPath, { method: "PUT", body: { value: 30 }, as: ann });
      },
      act: (app) => write(app, `${limitPath}/undo`, { body: {} }),
      check: async (app, answer) => {
        expect([answer.status, await answer.json()]).toMatchObject([
          200,
          { value: 20, version: 3 },
        ]);
        expect(await historyOf(app, limit)).toHaveLength(3);
      },
    });
  });
});
