import { access, buildServer, defineFeature } from "keelson";
import { CrashError, crashEverywhere, type TestApp } from "keelson/testing";
import { expect, test } from "vitest";

const who = defineFeature("who", (r) => {
  r.query("caller.show", {
    route: "GET /caller",
    access: access.authenticated,
    handler: async ({ user }) => user,
  });
});
const server = buildServer({ features: [who], auth: { apiKeys: true } });
const admin = { id: "ann", tenantId: "acme", roles: ["admin"] };

interface Key {
  readonly id: string;
  /** Absent if the answer was lost and the client has sent the request again. */
  readonly key?: string;
}

async function send(app: TestApp, method: string, path: string, body?: object) {
  const response = await app.fetch(path, {
    method,
    as: admin,
    headers: { "idempotency-key": `${method} ${path}`.replaceAll(" ", "-") },
    ...(body && { body }),
  });
  const text = await response.text();
  const answer = { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
  if (answer.status >= 500 || answer.status === 409) throw new CrashError();
  return answer;
}

const statusOf = async (app: TestApp, key: string) =>
  (await app.fetch("/caller", { headers: { "x-api-key": key } })).status;

async function keysOf(app: TestApp): Promise<readonly Key[]> {
  const { items } = (await (await app.fetch("/api-keys", { as: admin })).json()) as {
    readonly items: readonly Key[]; // safe: as the route answers
  };
  return items;
}

async function created(app: TestApp): Promise<Required<Key>> {
  const { body } = await send(app, "POST", "/api-keys", { name: "billing", roles: [] });
  return body;
}

test("a creation that is cut anywhere makes one key, and shows its secret at most once", async () => {
  const cuts = await crashEverywhere(server, {
    act: async (app) =>
      (await send(app, "POST", "/api-keys", { name: "a", roles: [] })).body as Key,
    check: async (app, { id, key }) => {
      const keys = await keysOf(app);
      expect(keys.map((one) => one.id)).toEqual([id]);
      if (key !== undefined) expect(await statusOf(app, key)).toBe(200);
      // Whoever has lost the secret replaces it.
      const { body } = await send(app, "POST", `/api-keys/${id}/rotate`, { overlapSeconds: 0 });
      expect(await statusOf(app, body.key)).toBe(200);
    },
  });
  expect(cuts.length).toBeGreaterThan(3);
});

test("a rotation that is cut anywhere leaves the former secret during the overlap, and one successor", async () => {
  let first: Required<Key> | undefined;
  await crashEverywhere(server, {
    arrange: async (app) => {
      first = await created(app);
    },
    act: async (app) =>
      (await send(app, "POST", `/api-keys/${first?.id}/rotate`, { overlapSeconds: 86_400 }))
        .body as Key,
    check: async (app, { id, key }) => {
      expect(id).toBe(first?.id);
      expect(await statusOf(app, String(first?.key))).toBe(200);
      if (key !== undefined) expect(await statusOf(app, key)).toBe(200);
      expect(await keysOf(app)).toHaveLength(1);
    },
  });
});

test("a revocation that is cut anywhere leaves no valid secret, and one key less", async () => {
  let key: Required<Key> | undefined;
  await crashEverywhere(server, {
    arrange: async (app) => {
      key = await created(app);
    },
    act: (app) => send(app, "DELETE", `/api-keys/${key?.id}`),
    check: async (app, { status }) => {
      expect(status).toBe(204);
      expect(await statusOf(app, String(key?.key))).toBe(401);
      expect(await keysOf(app)).toEqual([]);
    },
  });
});
