import {
  buildServer,
  type ConfigKeyHandle,
  FrameworkError,
  NotFoundError,
  PipelineError,
  reply,
} from "keelson";
import { setConfig } from "keelson/operators";
import { startTestApp, type TestApp } from "keelson/testing";
import { github, hmac, signedHeaders, slack, standardWebhooks, stripe } from "keelson/webhooks";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { newRingKey } from "../../src/base/secrets/key-ring.ts";
import { answersOtherwise } from "../support/held/hold.ts";
import { hooks, secret, world } from "./fixture.ts";

const before = { ...world };
let app: TestApp;
beforeAll(async () => {
  const parameter = "/hooks/key-ring";
  const ring = JSON.stringify({ active: "k1", keys: { k1: newRingKey() } });
  const server = buildServer({ features: [hooks], keyRing: { parameter } });
  app = await startTestApp(server, { secureParameters: { [parameter]: ring } });
});
afterAll(() => app.close());
beforeEach(() => {
  Object.assign(world, before, { runs: [] });
});

let events = 0;
const newEvent = (account: string | undefined = "acme") => ({ id: `evt_${++events}`, account });
const nowSeconds = () => Math.floor(app.clock.now() / 1_000);

async function send(path: string, body: string, headers: Record<string, string> = {}) {
  const type = { "content-type": "application/json" };
  const response = await app.fetch(path, {
    method: "POST",
    body,
    headers: { ...type, ...headers },
  });
  const text = await response.text();
  return {
    status: response.status,
    body: text === "" ? undefined : JSON.parse(text),
    isReplayed: response.headers.get("idempotent-replayed") === "true",
    headers: response.headers,
  };
}

const toStripe = async (event: unknown, options = {}, path = "/hooks/stripe") => {
  const body = JSON.stringify(event);
  const timestampSeconds = nowSeconds();
  return send(
    path,
    body,
    await signedHeaders(stripe({ secret }), body, { timestampSeconds, ...options }),
  );
};

const refusals = () =>
  app.logs.filter(({ msg }) => msg === "webhook.refused").map(({ reason }) => reason);

describe("a signed webhook", () => {
  test("runs behind the wall of its event's tenant, without a user", async () => {
    const event = newEvent("globex");
    world.handle = async (ctx) => {
      expect(ctx.user).toMatchObject({ id: undefined, tenantId: "globex", roles: [] });
      const put = {
        Put: { TableName: hooks.table.name, Item: hooks.table.key(ctx, "payments", event.id) },
      };
      return ctx.commit([put], { booked: event.id });
    };
    expect(await toStripe(event)).toMatchObject({ status: 200, body: { booked: event.id } });
    expect(world.runs).toEqual([{ tenantId: "globex", event }]);
    const isBooked = (tenantId: string) =>
      app.call(hooks.isBooked, { id: event.id }, { as: { id: "ann", tenantId } });
    expect([await isBooked("globex"), await isBooked("acme")]).toEqual([true, false]);
  });

  test("enqueues with its commit, in the request's trace", async () => {
    const event = newEvent();
    world.handle = async (ctx) => {
      await ctx.enqueue(hooks.book, { id: event.id });
      return { trace: ctx.trace.traceId, requestId: ctx.requestId };
    };
    const { body } = await toStripe(event);
    await app.settled();
    expect(world.runs).toEqual([
      { tenantId: "acme", event },
      { tenantId: "acme", event: { id: event.id } },
    ]);
    const completed = app.logs.find(
      ({ msg, requestId }) => msg === "request.completed" && requestId === body.requestId,
    );
    expect(completed).toMatchObject({ trace_id: body.trace, tenantId: "acme" });
  });

  test("runs once: a repeat gets the first response, even if it is signed again", async () => {
    const event = newEvent();
    world.handle = async () => ({ at: world.runs.length });
    expect(await toStripe(event)).toMatchObject({ body: { at: 1 }, isReplayed: false });
    expect(await toStripe(event)).toMatchObject({ body: { at: 1 }, isReplayed: true });
    app.clock.advance(29 * 24 * 3_600_000);
    const changed = { ...event, more: "since then" };
    expect(await toStripe(changed)).toMatchObject({ body: { at: 1 }, isReplayed: true });
    app.clock.advance(2 * 24 * 3_600_000);
    expect(await toStripe(event)).toMatchObject({ body: { at: 2 }, isReplayed: false });
  });

  test("runs once for each tenant, because senders number their events themselves", async () => {
    const { id } = newEvent();
    await toStripe({ id, account: "acme" });
    await toStripe({ id, account: "globex" });
    expect(world.runs.map(({ tenantId }) => tenantId)).toEqual(["acme", "globex"]);
  });

  test("without a tenant gets a 204, and does not run", async () => {
    const { id } = newEvent();
    expect(await toStripe({ id })).toMatchObject({ status: 204, body: undefined });
    expect(world.runs).toEqual([]);
  });

  test("that does not fit the schema is a 422 once it is verified", async () => {
    expect(await toStripe({ id: "" })).toMatchObject({ status: 422 });
    expect(await send("/hooks/stripe", "{}")).toMatchObject({ status: 401 });
  });

  test("ignores credentials and the query, which the sender does not sign", async () => {
    const event = newEvent();
    const body = JSON.stringify(event);
    const headers = await signedHeaders(stripe({ secret }), body, {
      timestampSeconds: nowSeconds(),
    });
    const authorization = `Bearer ${await app.token({ id: "bob", tenantId: "globex" })}`;
    const sent = await send("/hooks/stripe?account=globex&id=x", body, {
      ...headers,
      authorization,
    });
    expect(sent.status).toBe(204);
    expect(world.runs).toEqual([{ tenantId: "acme", event }]);
  });
});

describe("a run that fails", () => {
  test.each<[string, () => unknown, number, string]>([
    ["an error", () => new Error("no"), 500, "internal_error"],
    ["a typed error below 500", () => new NotFoundError("order", "1"), 500, "internal_error"],
    ["a typed error above", () => new PipelineError("later", 503), 503, "pipeline_error"],
  ])("with %s is a 5xx, and may be sent again", async (_what, error, status, code) => {
    const event = newEvent();
    world.handle = async () => {
      throw error();
    };
    expect(await toStripe(event)).toMatchObject({ status, body: { error: code } });
    world.handle = async () => ({ done: true });
    expect(await toStripe(event)).toMatchObject({ body: { done: true }, isReplayed: false });
  });

  test.each<[string, Partial<typeof world>]>([
    [
      "tenant",
      {
        tenant: async () => {
          throw new NotFoundError("account", "1");
        },
      },
    ],
    [
      "id",
      {
        id: () => {
          throw new NotFoundError("payment", "1");
        },
      },
    ],
  ])(
    "in its %s with a typed error below 500 is a 500, and may be sent again",
    async (_of, broken) => {
      const body = JSON.stringify(newEvent());
      Object.assign(world, broken);
      expect(await send("/hooks/function/here", body)).toMatchObject({
        status: 500,
        body: { error: "internal_error" },
      });
      Object.assign(world, { tenant: before.tenant, id: before.id });
      expect(await send("/hooks/function/here", body)).toMatchObject({ status: 204 });
      expect(world.runs).toHaveLength(1);
    },
  );

  test("with a status that the handler chose keeps it, drops its effects and runs again", async () => {
    answersOtherwise("the handler asks the sender to stop");
    const event = newEvent();
    world.handle = async (ctx) => {
      await ctx.enqueue(hooks.book, { id: event.id });
      return reply({}, { status: 410 });
    };
    for (const runs of [1, 2]) {
      expect(await toStripe(event)).toMatchObject({ status: 410, isReplayed: false });
      await app.settled();
      expect(world.runs).toHaveLength(runs);
    }
  });

  test("a repeat waits for the run in progress, and gets its response", async () => {
    const ask = (body: string) => send("/hooks/function/here", body);
    const body = JSON.stringify(newEvent());
    let repeat: ReturnType<typeof ask> | undefined;
    let arrived = 0;
    world.id = (given) => {
      arrived += 1;
      return before.id(given);
    };
    world.handle = async (ctx) => {
      repeat ??= ask(body);
      await expect.poll(() => arrived).toBe(2);
      return { requestId: ctx.requestId };
    };
    const logged = app.logs.length;
    const first = await ask(body);
    expect(await repeat).toMatchObject({ body: first.body, isReplayed: true });
    expect(world.runs).toHaveLength(1);
    expect(app.logs.slice(logged).map(({ msg }) => msg)).toContain("once.shared");
  });
});

describe("a webhook that is not signed", () => {
  test("gets the same 401 for every reason, which only the log has", async () => {
    const logged = refusals().length;
    const event = newEvent();
    const body = JSON.stringify(event);
    const at = (timestampSeconds: number) =>
      signedHeaders(stripe({ secret }), body, { timestampSeconds });
    const now = nowSeconds();
    const sent = [
      await send("/hooks/stripe", body),
      await send("/hooks/stripe", body, await at(now - 400)),
      await send("/hooks/stripe", body, await at(now + 400)),
      await send("/hooks/stripe", `${body} `, await at(now)),
      await send("/hooks/stripe", "no json", { "stripe-signature": "t=1" }),
    ];
    const { requestId: _, ...same } = sent[0]?.body ?? {};
    expect(same).toEqual({ error: "signature_invalid", message: "The signature is not valid" });
    for (const { status, body: answer, headers } of sent) {
      expect([status, headers.get("www-authenticate")]).toEqual([401, "Signature"]);
      expect(answer).toMatchObject(same);
    }
    expect(refusals().slice(logged)).toEqual([
      "no_signature",
      "too_old",
      "too_new",
      "wrong_signature",
      "too_old",
    ]);
    expect(world.runs).toEqual([]);
    expect(JSON.stringify(app.logs)).not.toContain(secret);
  });

  test("costs no call of the store", async () => {
    const calls = { ...app.calls };
    await send("/hooks/stripe", "{}", { "stripe-signature": "t=1,v1=2" });
    // The secret is the tenant's own: a read of its configuration.
    for (const signature of [undefined, "sha256=", "sha256=ab", "a".repeat(64)]) {
      const headers = signature === undefined ? {} : { "x-signature": signature };
      expect((await send("/hooks/own/stranger", "{}", headers)).status).toBe(401);
    }
    expect({ ...app.calls }).toEqual(calls);
  });
});

describe("the default ID", () => {
  test("is the one that Standard Webhooks signs", async () => {
    world.handle = async () => ({ at: world.runs.length });
    const toStandard = async (event: unknown, id: string) => {
      const body = JSON.stringify(event);
      const options = { id, timestampSeconds: nowSeconds() };
      return send(
        "/hooks/standard",
        body,
        await signedHeaders(standardWebhooks({ secret }), body, options),
      );
    };
    expect(await toStandard(newEvent(), "msg_1")).toMatchObject({ body: { at: 1 } });
    expect(await toStandard(newEvent(), "msg_1")).toMatchObject({ isReplayed: true });
    expect(await toStandard(newEvent(), "msg_2")).toMatchObject({ body: { at: 2 } });
  });

  test("is the body's hash if the scheme signs none, whatever the headers of GitHub say", async () => {
    world.handle = async () => ({ at: world.runs.length });
    const toGithub = async (body: string, delivery: string, tenant = "acme") => {
      const headers = { "x-github-delivery": delivery, "x-github-event": delivery };
      return send(`/hooks/github/${tenant}`, body, {
        ...headers,
        ...(await signedHeaders(github({ secret }), body)),
      });
    };
    expect(await toGithub('{"n":1}', "d1")).toMatchObject({ body: { at: 1 } });
    expect(await toGithub('{"n":1}', "d2")).toMatchObject({ body: { at: 1 }, isReplayed: true });
    expect(await toGithub('{"n":2}', "d1")).toMatchObject({ body: { at: 2 } });
    expect(world.runs.map(({ tenantId }) => tenantId)).toEqual(["acme", "acme"]);
  });
});

describe("Slack's check of an address", () => {
  const toSlack = async (event: unknown) => {
    const body = JSON.stringify(event);
    const options = { timestampSeconds: nowSeconds() };
    return send("/hooks/slack", body, await signedHeaders(slack({ secret }), body, options));
  };

  test("gets its challenge back if it is signed", async () => {
    const event = { type: "url_verification", challenge: "3eZb" };
    expect(await toSlack(event)).toMatchObject({ status: 200, body: { challenge: "3eZb" } });
    expect(await send("/hooks/slack", JSON.stringify(event))).toMatchObject({ status: 401 });
    expect(world.runs).toEqual([]);
  });

  test("is no event, whose tenant has a limit", async () => {
    const account = "initech";
    const statuses = [];
    for (let n = 0; n < 3; n++) statuses.push((await toSlack(newEvent(account))).status);
    expect(statuses).toEqual([204, 204, 429]);
  });

  test("is no event, which has the status of its handler", async () => {
    world.handle = async () => ({});
    expect(await toSlack(newEvent())).toMatchObject({ status: 202 });
  });
});

describe("a function that verifies", () => {
  const ask = (event: unknown, place = "here") =>
    send(`/hooks/function/${place}`, JSON.stringify(event));

  test("gets the exact bytes, the headers and the parameters of the path", async () => {
    const given: unknown[] = [];
    world.verify = async (delivery) => given.push(delivery) > 0;
    await send("/hooks/function/a%20b", '{ "id": "x",  "account": "acme" }', { "x-mine": "1" });
    expect(given).toMatchObject([{ params: { place: "a b" }, headers: { "x-mine": "1" } }]);
    const { rawBody } = given[0] as { readonly rawBody: Uint8Array };
    expect(new TextDecoder().decode(rawBody)).toBe('{ "id": "x",  "account": "acme" }');
    expect(world.runs).toHaveLength(1);
  });

  test.each<[string, () => Promise<unknown>, string]>([
    ["false", async () => false, "verify_returned_false"],
    ["what is only true to JavaScript", async () => "yes", "verify_returned_false"],
    [
      "nothing but an error",
      async () => {
        throw new Error("the key is unknown");
      },
      "verify_threw",
    ],
  ])("refuses with %s", async (_what, verify, reason) => {
    world.verify = verify;
    expect(await ask(newEvent())).toMatchObject({
      status: 401,
      body: { error: "signature_invalid" },
    });
    const line = app.logs.findLast(({ msg }) => msg === "webhook.refused");
    expect(line).toMatchObject({ level: "warn", reason });
    if (reason === "verify_threw") expect(line).toMatchObject({ message: "the key is unknown" });
  });

  test("passes on a typed error of 500 or above, and no other", async () => {
    world.verify = async () => {
      throw new FrameworkError("config_unavailable", "no keys");
    };
    expect(await ask(newEvent())).toMatchObject({ status: 503 });
    world.verify = async () => {
      throw new NotFoundError("key", "1");
    };
    expect(await ask(newEvent())).toMatchObject({ status: 401 });
  });
});

test.each<[string, string, unknown]>([
  ["id", "a number", 7],
  ["id", "an empty text", ""],
  ["tenant", "a number", 7],
  ["tenant", "too long a text", "a".repeat(257)],
])("a result of `%s` that is %s is a 500, and runs nothing", async (name, _what, value) => {
  Object.assign(world, { [name]: () => value });
  expect(await send("/hooks/function/x", JSON.stringify(newEvent()))).toMatchObject({
    status: 500,
  });
  expect(world.runs).toEqual([]);
});

test("a JSON value is the event's member `body`", async () => {
  expect(await send("/hooks/list", "[1,2]")).toMatchObject({ status: 204 });
  expect(world.runs).toMatchObject([{ tenantId: "acme", event: { body: [1, 2] } }]);
});

describe("a secret", () => {
  const signed = (path: string, body: string, value: string, prefix = "") =>
    signedHeaders(hmac({ secret: value, header: "X-Signature", prefix }), body).then((headers) =>
      send(path, body, headers),
    );
  const ann = { id: "ann", tenantId: "acme", roles: ["admin", "systemAdmin"] };
  const put = async (
    key: ConfigKeyHandle<string | undefined>,
    value: string,
    tenantId?: string,
  ) => {
    const as = { ...ann, ...(tenantId !== undefined && { tenantId }) };
    const ctx = await app.ctx(as);
    await setConfig(ctx, key, value);
  };

  test("of a tenant verifies only the tenant that the path names", async () => {
    await put(hooks.config.own, "acme's", "acme");
    await put(hooks.config.own, "globex's", "globex");
    const body = JSON.stringify(newEvent("somebody"));
    const to = (tenant: string, value: string) =>
      signed(`/hooks/own/${tenant}`, body, value, "sha256=");
    expect(await to("acme", "globex's")).toMatchObject({ status: 401 });
    expect(await to("unset", "acme's")).toMatchObject({ status: 401 });
    expect(refusals().slice(-2)).toEqual(["wrong_signature", "no_secret"]);
    expect(world.runs).toEqual([]);
    expect(await to("acme", "acme's")).toMatchObject({ status: 204 });
    expect(await to("globex", "acme's")).toMatchObject({ status: 401 });
    expect(world.runs.map(({ tenantId }) => tenantId)).toEqual(["acme"]);
    expect(app.logs.findLast(({ msg }) => msg === "webhook.refused")).not.toHaveProperty(
      "tenantId",
    );
  });

  test("of a path that names no tenant verifies nothing", async () => {
    const path = `/hooks/own/${"a".repeat(257)}`;
    expect(await signed(path, "{}", "x", "sha256=")).toMatchObject({ status: 401 });
    expect(refusals().at(-1)).toBe("malformed_tenant");
  });

  test("is rotated in the configuration: each of the list verifies", async () => {
    const body = () => JSON.stringify(newEvent());
    expect(await signed("/hooks/config", body(), "code")).toMatchObject({ status: 204 });
    expect(await signed("/hooks/config", body(), "next")).toMatchObject({ status: 401 });
    await put(hooks.config.next, "next");
    expect(await signed("/hooks/config", body(), "next")).toMatchObject({ status: 204 });
    expect(await signed("/hooks/config", body(), "code")).toMatchObject({ status: 204 });
  });
});
