import { once } from "node:events";
import { GetCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import {
  access,
  buildServer,
  currentContext,
  defineFeature,
  type HookOptions,
  type QueryContext,
  type Server,
} from "keelson";
import { expect } from "vitest";
import { z } from "zod";
import { rebuild } from "../../src/app/run/rebuild.ts";
import type { Runtime } from "../../src/app/runtime/runtime.ts";
import { createRuntime } from "../../src/app/server/create-runtime.ts";
import { openAwsAdapters } from "../../src/aws/adapters/adapters.ts";
import { type Fixture, files, plans } from "./fixture.ts";
import { withLambda } from "./lambda.ts";
import type { Row } from "./row.ts";

declare module "keelson" {
  interface Events {
    "note.kept": { n: number };
  }
  interface Writes {
    "probe.script.write": { input: { id: string }; accepted: unknown; output: unknown };
  }
}

const uuid7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Sections 2.6, 4.4 and 4.5: `ctx`, the ambient context, request IDs, cancellation. */
export const contextRows: readonly Row[] = [
  {
    section: "1",
    sentence: "Feature authors declare behaviour and handlers use it through `ctx`.",
    prove: async ({ handle, newCaller }) => {
      const as = newCaller();
      const { status, body, logs } = await handle(
        async (ctx) => {
          ctx.log.info("used");
          return {
            plan: await ctx.query("plans.plan.current", {}),
            page: await ctx.config(files.config.pageSize),
            user: ctx.user.id,
          };
        },
        { as },
      );
      expect([status, body]).toEqual([200, { plan: { plan: "free" }, page: 20, user: as.id }]);
      expect(logs).toContainEqual(expect.objectContaining({ msg: "used" }));
    },
  },
  {
    section: "2.6",
    sentence: "`db` | readonly database instance",
    prove: async ({ handle }) => {
      const { body } = await handle(async (ctx) => {
        const Key = { pk: "conformance", sk: "1" };
        const TableName = "keelson-config";
        await ctx.db.send(new PutCommand({ TableName, Item: { ...Key, value: 1 } }));
        const { Item } = await ctx.db.send(
          new GetCommand({ TableName, Key, ConsistentRead: true }),
        );
        return { Item };
      });
      expect(body).toEqual({ Item: { pk: "conformance", sk: "1", value: 1 } });
    },
  },
  {
    section: "2.6",
    sentence: "`user` | readonly pipeline user",
    prove: async ({ handle, newCaller }) => {
      const as = newCaller(["editor"]);
      const { body } = await handle(
        (ctx) => ({ user: ctx.user, isFrozen: Object.isFrozen(ctx.user) }),
        { as },
      );
      expect(body).toEqual({
        user: { id: as.id, tenantId: as.tenantId, roles: ["editor"], kind: "user" },
        isFrozen: true,
      });
      expect((await handle((ctx) => ctx.user)).body).toEqual({ roles: [], kind: "user" });
    },
  },
  {
    section: "2.6",
    sentence: "`log` | readonly Logger | child logger with request context",
    prove: async ({ handle, newCaller }) => {
      const as = newCaller();
      const { logs, requestId } = await handle((ctx) => void ctx.log.info("here"), { as });
      expect(logs).toEqual([
        expect.objectContaining({ msg: "here", requestId, tenantId: as.tenantId, userId: as.id }),
      ]);
    },
  },
  {
    section: "2.6",
    sentence: "`requestId` | readonly string | correlation ID",
    prove: async ({ handle }) => {
      const { body, requestId } = await handle((ctx) => ({ id: ctx.requestId }), {
        headers: { "x-request-id": "mine" },
      });
      expect([body, requestId]).toEqual([{ id: "mine" }, "mine"]);
    },
  },
  {
    section: "2.6",
    sentence: "`config` | readonly config accessor | `ctx.config(<key>)`",
    prove: async ({ handle }) => {
      const { body } = await handle(async ({ config }) => ({
        size: await config(files.config.maxUploadSizeMb),
      }));
      expect(body).toEqual({ size: 10 });
    },
  },
  {
    section: "2.6",
    sentence: "`signal` | optional `AbortSignal` | present only when the request carries one",
    prove: signalWhereThereIsOne,
  },
  {
    section: "1",
    sentence: "An optional cancellation signal is exposed.",
    prove: signalWhereThereIsOne,
  },
  {
    section: "2.6",
    sentence:
      "Ambient async-local storage holds `requestId`, `tenantId`, `userId` and is available everywhere, also without `ctx`.",
    prove: async ({ handle, newCaller }) => {
      const as = newCaller();
      const ids = () => {
        const known = currentContext();
        return [known?.requestId, known?.tenantId, known?.userId];
      };
      const { body, requestId } = await handle(
        async () => {
          await new Promise((resolve) => setImmediate(resolve));
          const inTimer = await new Promise((resolve) => setTimeout(() => resolve(ids()), 1));
          return [ids(), inTimer, await Promise.resolve().then(ids)];
        },
        { as },
      );

      expect(body).toEqual(Array(3).fill([requestId, as.tenantId, as.id]));
      expect(currentContext()).toBeUndefined();
    },
  },
  {
    section: "2.6",
    sentence: "`ctx` carries everything explicit, for handlers, …",
    prove: async ({ handle, newCaller }) => {
      const { body } = await handle((ctx) => Object.keys(ctx), { as: newCaller() });
      expect(body).toEqual(
        expect.arrayContaining(["db", "user", "log", "requestId", "config", "signal"]),
      );
    },
  },
  {
    section: "2.6",
    sentence: "… hooks …",
    prove: everythingInHooks,
  },
  {
    section: "4.4",
    sentence:
      "For every request: if the request header `X-Request-ID` is present, its value is the request ID; …",
    prove: async ({ app, fetch, handle }) => {
      for (const id of ["r1", "A.b_c:d=e+f/g@h-1", "x".repeat(128)]) {
        const headers = { "X-Request-ID": id };
        expect((await handle((ctx) => ({ id: ctx.requestId }), { headers })).body).toEqual({ id });
        for (const path of ["/nowhere", "/health/ready", "/signed-in", "/%zz"]) {
          expect((await fetch(path, { headers })).requestId).toBe(id);
        }
      }
      expect(app.logs.filter(({ msg }) => msg === "request_id.rejected")).toEqual([]);
    },
  },
  {
    section: "4.4",
    sentence: "… otherwise one is generated.",
    prove: async ({ handle }) => {
      const asked = await Promise.all(
        Array.from({ length: 20 }, () => handle((ctx) => ({ id: ctx.requestId }))),
      );
      const ids = asked.map(({ requestId }) => requestId);

      for (const { body, requestId } of asked) expect(body).toEqual({ id: requestId });
      for (const id of ids) expect(id).toMatch(uuid7);
      expect(new Set(ids).size).toBe(20);
    },
  },
  {
    section: "4.4",
    sentence: "The response carries header `X-Request-ID` with that value.",
    prove: async ({ app, fetch, handle, probe, route }) => {
      const headers = { "x-request-id": "r-4.4" };
      const broken = route(() => {
        throw new Error("broken");
      });
      const answers = [
        await handle(() => undefined, { headers }),
        await handle(() => ({}), { headers, method: "POST" }),
        await fetch(broken, { headers }),
        await fetch(broken, { headers, method: "HEAD" }),
        await fetch("/nowhere", { headers }),
        await fetch("/signed-in", { headers }),
        await fetch("/signed-in", { headers, method: "DELETE" }),
        await fetch("/signed-in", { headers, method: "OPTIONS" }),
        await fetch("/%zz", { headers }),
        await fetch("/scripts/s1", {
          headers: { ...headers, "content-type": "application/json" },
          body: "{",
          method: "POST",
        }),
      ];
      expect(answers.map(({ status }) => status)).toEqual([
        204, 200, 500, 500, 404, 401, 405, 204, 400, 400,
      ]);
      expect(answers.map(({ requestId }) => requestId)).toEqual(answers.map(() => "r-4.4"));

      await withLambda(buildServer({ features: [probe] }), app.env, async ({ invoke }) => {
        for (const path of [route(() => ({})), broken, "/nowhere", "/signed-in"]) {
          expect((await invoke({ path, headers })).headers).toMatchObject({
            "x-request-id": "r-4.4",
          });
        }
      });
    },
  },
  {
    section: "4.4",
    sentence: "The ID is placed in the ambient context together with tenant and user IDs.",
    prove: async ({ app, handle, newCaller, probe, route }) => {
      const as = newCaller();
      const known = () => ({ ...currentContext(), signal: undefined, trace: undefined });
      const headers = { "x-request-id": "r-ambient" };
      const expected = { requestId: "r-ambient", tenantId: as.tenantId, userId: as.id };

      expect((await handle(known, { as, headers })).body).toEqual(expected);
      expect((await handle(known, { headers })).body).toEqual({ requestId: "r-ambient" });
      await withLambda(buildServer({ features: [probe] }), app.env, async ({ invoke }) => {
        expect(JSON.parse((await invoke({ path: route(known), headers, as })).body ?? "")).toEqual(
          expected,
        );
      });
    },
  },
  {
    section: "1",
    sentence: "A request ID is generated or adopted, propagated and exposed.",
    prove: async ({ app, handle, route, newCaller }) => {
      const as = newCaller();
      const propagated = route((ctx) => ctx.query("plans.plan.current", {}));
      const { logs, requestId } = await handle(
        async (ctx) => {
          await ctx.query("plans.plan.current", {});
          // On to another service: the ID goes along as the header.
          return (
            await app.fetch(propagated, { as, headers: { "x-request-id": ctx.requestId } })
          ).json();
        },
        { as },
      );
      expect(requestId).toMatch(uuid7);
      expect(logs.filter(({ msg }) => msg === "plan.read")).toHaveLength(2);
    },
  },
  {
    section: "4.5.1",
    sentence:
      "The HTTP layer extracts the standard abort signal of the incoming request and stores it in the ambient request context.",
    prove: async ({ handle }) => {
      const { body } = await handle((ctx) => {
        const signal = currentContext()?.signal;
        return {
          isSignal: signal instanceof AbortSignal,
          isSame: signal === ctx.signal,
          aborted: signal?.aborted,
        };
      });
      expect(body).toEqual({ isSignal: true, isSame: true, aborted: false });
    },
  },
  {
    section: "4.5.2",
    sentence:
      "When building the handler context, the dispatcher sets `ctx.signal` from it only when present.",
    prove: async (fixture) => {
      await signalWhereThereIsOne(fixture);
      await oneSignalOfASharedRun(fixture);
    },
  },
  {
    section: "4.5.3",
    sentence:
      "Handlers may call `ctx.signal?.throwIfAborted()`, for example once per loop iteration.",
    prove: async ({ app, route, fetch }) => {
      const leaving = new AbortController();
      let rounds = 0;
      const stopped = Promise.withResolvers<unknown>();
      const path = route(async (ctx) => {
        try {
          for (;;) {
            ctx.signal?.throwIfAborted();
            if (++rounds === 3) leaving.abort();
            await new Promise((resolve) => setImmediate(resolve));
          }
        } catch (error) {
          stopped.resolve(error);
          throw error;
        }
      });
      await expect(
        fetch(path, { signal: leaving.signal, headers: { "x-request-id": "r-left" } }),
      ).rejects.toThrow();

      expect(await stopped.promise).toMatchObject({ name: "AbortError" });
      await expect
        .poll(() => app.logs)
        .toContainEqual(expect.objectContaining({ requestId: "r-left", msg: "request.aborted" }));
    },
  },
  {
    section: "4.5.4",
    sentence: "The pipeline layer (database wrapper, …) honours the signal where sensible.",
    prove: async ({ app, route, fetch }) => {
      const leaving = new AbortController();
      const outcome = Promise.withResolvers<unknown>();
      const path = route(async (ctx) => {
        const command = () =>
          new GetCommand({ TableName: "keelson-config", Key: { pk: "a", sk: "b" } });
        await ctx.db.send(command());
        leaving.abort();
        if (ctx.signal?.aborted === false) await once(ctx.signal, "abort");
        const callsBefore = app.calls["GetItem"];
        const name = await ctx.db.send(command()).then(
          () => "sent",
          (error: Error) => error.name,
        );
        outcome.resolve({ name, calls: (app.calls["GetItem"] ?? 0) - (callsBefore ?? 0) });
      });
      await expect(fetch(path, { signal: leaving.signal })).rejects.toThrow();

      expect(await outcome.promise).toEqual({ name: "AbortError", calls: 0 });
    },
  },
  {
    section: "4.5.4",
    sentence: "… event streaming, …",
    prove: async ({ newCaller, start }) => {
      const leaving = new AbortController();
      const outcome = Promise.withResolvers<unknown>();
      const app = await start(
        notesServer(async (ctx) => {
          const seen: number[] = [];
          try {
            for await (const { payload } of ctx.events("note.kept")) {
              seen.push(payload.n);
              leaving.abort();
              if (ctx.signal?.aborted === false) await once(ctx.signal, "abort");
            }
          } catch (error) {
            outcome.resolve({ seen, name: error instanceof Error && error.name });
          }
        }),
      );
      const as = newCaller();
      for (const n of [1, 2, 3]) await app.call("notes.note.keep", { n }, { as });
      await expect(app.fetch("/notes", { as, signal: leaving.signal })).rejects.toThrow();

      expect(await outcome.promise).toEqual({ seen: [1], name: "AbortError" });
    },
  },
  {
    section: "4.5.4",
    sentence: "… projection rebuild …",
    prove: async ({ newCaller, start }) => {
      const counted: number[] = [];
      const stopping = new AbortController();
      const server = notesServer(undefined, (n) => {
        counted.push(n);
        if (n === 2) stopping.abort(new Error("enough"));
      });
      const app = await start(server);
      const as = newCaller();
      for (const n of [1, 2, 3]) {
        await app.call("notes.note.keep", { n }, { as });
        app.clock.advance(1);
      }
      const variables = app.env;
      const runtime: Runtime = createRuntime(server, {
        ...{ variables, clock: app.clock, write: () => {} },
        openAdapters: () => openAwsAdapters(runtime, variables),
      });
      const projection = server.registry.projections.get("note.count");
      if (projection === undefined) throw new Error("there is no projection");
      await expect(rebuild(runtime, { projection, signal: stopping.signal })).rejects.toThrow(
        "enough",
      );
      expect(counted).toEqual([1, 2]);
      expect(await rebuild(runtime, { projection })).toMatchObject({ replayed: 3 });
      expect(counted).toEqual([1, 2, 3]);
      await runtime.close();
    },
  },
];

/** A server that keeps events, reads them by a route and counts them by a projection. */
function notesServer(
  read?: (ctx: QueryContext) => Promise<unknown>,
  count?: (n: number) => void,
): Server {
  const payload = z.object({ n: z.number() });
  const notes = defineFeature("notes", (r) => {
    r.event("note.kept", payload, { keep: true });
    r.projection("note.count", {
      version: 1,
      on: {
        "note.kept": async (_ctx, event) => {
          count?.(event.payload.n);
          return [];
        },
      },
    });
    r.write("note.keep", {
      input: payload,
      handler: (ctx, { n }) => ctx.publish("note.kept", { n }),
    });
    r.query("note.read", {
      route: "GET /notes",
      access: access.tenant,
      handler: (ctx) => read?.(ctx),
    });
  });
  return buildServer({ features: [notes] });
}

async function signalWhereThereIsOne({
  app,
  handle,
  newCaller,
  probe,
  route,
}: Fixture): Promise<void> {
  const script = (ctx: object) => ({
    has: "signal" in ctx,
    isSignal: "signal" in ctx && ctx.signal instanceof AbortSignal,
  });
  expect((await handle(script)).body).toEqual({ has: true, isSignal: true });

  // Neither a call without HTTP nor an API Gateway event carries a signal.
  expect(
    await app.call("probe.script.run", { id: route(script).split("/").pop() }, { as: newCaller() }),
  ).toEqual({
    has: false,
    isSignal: false,
  });
  await withLambda(buildServer({ features: [plans, probe] }), app.env, async ({ invoke }) => {
    expect(JSON.parse((await invoke({ path: route(script) })).body ?? "")).toEqual({
      has: false,
      isSignal: false,
    });
  });
}

/** Each moment of a hook has the `ctx` of its write, with what it carries. */
async function everythingInHooks({ handle, newCaller, probe, start }: Fixture): Promise<void> {
  const seen: unknown[] = [];
  type Hooked = Parameters<NonNullable<HookOptions<"probe.script.write">["after"]>>[0];
  const look = async (moment: string, ctx: Hooked) => {
    ctx.log.info(moment);
    const { Item } = await ctx.db.send(
      new GetCommand({ TableName: "keelson-config", Key: { pk: "none", sk: "1" } }),
    );
    const page = await ctx.config(files.config.pageSize);
    const { plan } = await ctx.query("plans.plan.current", {});
    seen.push([
      moment,
      ctx.requestId,
      ctx.user.id,
      page,
      plan,
      Item,
      ctx.signal instanceof AbortSignal,
    ]);
  };
  const hooks = defineFeature("hooks", (r) => {
    r.hook("probe.script.write", {
      before: (ctx) => look("before", ctx),
      commit: async (ctx) => {
        await look("commit", ctx);
        return [{ Put: { TableName: "keelson-config", Item: { pk: "hooked", sk: "1" } } }];
      },
      after: (ctx) => look("after", ctx),
    });
  });
  const app = await start(buildServer({ features: [plans, files, probe, hooks] }));
  const as = newCaller();
  const { status, requestId, logs } = await handle(() => ({}), {
    app,
    as,
    method: "POST",
    body: {},
  });
  const moments = ["before", "commit", "after"];
  expect(status).toBe(200);
  expect(seen).toEqual(
    moments.map((moment) => [moment, requestId, as.id, 20, "free", undefined, true]),
  );
  const known = { requestId, tenantId: as.tenantId, userId: as.id, handler: "probe.script.write" };
  for (const msg of moments)
    expect(logs).toContainEqual(expect.objectContaining({ ...known, msg }));
}

/** Duplicates that come at once share a run and its signal, which is that of both contexts, whoever leaves. */
async function oneSignalOfASharedRun({ app, newCaller, route }: Fixture): Promise<void> {
  const [began, go, seen] = [
    Promise.withResolvers<void>(),
    Promise.withResolvers<void>(),
    Promise.withResolvers<unknown>(),
  ];
  const path = route(async (ctx) => {
    const isSame = () => ctx.signal === currentContext()?.signal;
    const atFirst = isSame();
    began.resolve();
    await go.promise;
    seen.resolve([atFirst, isSame()]);
    return { done: true };
  });
  const as = newCaller();
  const leaving = new AbortController();
  const write = (signal?: AbortSignal) =>
    app.fetch(path, {
      method: "POST",
      body: {},
      as,
      headers: { "idempotency-key": "shared" },
      ...(signal && { signal }),
    });
  const first = write(leaving.signal).catch(() => "gone");
  await began.promise;
  const second = write();
  leaving.abort();
  expect(await first).toBe("gone");
  go.resolve();

  expect(await seen.promise).toEqual([true, true]);
  expect((await second).status).toBe(200);
}
