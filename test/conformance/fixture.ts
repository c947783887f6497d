import {
  access,
  BootError,
  type BootProblem,
  buildServer,
  type ConfigHandles,
  type ConfigKeyHandle,
  type ConfigScope,
  type ConfigSource,
  createConfigResolver,
  createSystemConfig,
  createTenantConfig,
  createUserConfig,
  defineFeature,
  type KeyDeclaration,
  type PipelineContext,
  type Query,
  type QueryContext,
  resolveConfigOrParam,
  type Server,
  type ServerOptions,
} from "keelson";
import { type Caller, startTestApp, type TestApp, type TestFetchOptions } from "keelson/testing";
import { z } from "zod";

const planInput = z.object({});
const planOutput = z.object({ plan: z.enum(["free", "pro"]) });
const memo = z.object({ script: z.string() });

declare module "keelson" {
  interface Queries {
    "plans.plan.current": Query<typeof planInput, typeof planOutput>;
  }
  interface Events {
    "memo.written": z.output<typeof memo>;
  }
  interface Jobs {
    "memos.memo.print": z.input<typeof memo>;
    "memos.memo.sort": z.input<typeof memo>;
  }
  interface Channels {
    board: z.input<typeof memo>;
  }
}

/** The business logic of the computed keys: the tenant `rich` is on `pro`. */
export const plans = defineFeature("plans", (r) => {
  r.query("plan.current", {
    input: planInput,
    output: planOutput,
    handler: async (ctx) => {
      ctx.log.debug("plan.read");
      return { plan: ctx.user.tenantId === "rich" ? "pro" : "free" };
    },
  });
});

/** The specification's examples: a key of each scope and type, and the route of 2.4. */
export const files = defineFeature("files", (r) => {
  const config = r.config({
    keys: {
      maxUploadSizeMb: createTenantConfig("number", {
        default: 10,
        bounds: { min: 1, max: 10_000 },
      }),
      signedUrlExpirySeconds: createTenantConfig("number", {
        default: 900,
        bounds: { min: 60, max: 604_800 },
        allowPerRequest: true,
      }),
      storageQuotaMb: createTenantConfig("number", {
        computed: async (ctx) =>
          (await ctx.query("plans.plan.current", {})).plan === "pro" ? 5_000 : 100,
      }),
      greeting: createTenantConfig("text", { default: "Hello" }),
      pageSize: createUserConfig("number", {
        default: 20,
        bounds: { min: 5, max: 100 },
        allowPerRequest: true,
      }),
      listOrder: createUserConfig("select", {
        options: ["newest", "name"],
        default: "newest",
        allowPerRequest: true,
      }),
      showHidden: createUserConfig("boolean", { default: true, allowPerRequest: true }),
      maintenanceMode: createSystemConfig("boolean", { default: false }),
    },
  });
  r.query("file.download-url", {
    route: "GET /files/:id/download-url",
    access: access.authenticated,
    input: z.object({ id: z.string(), expiresSeconds: z.string().optional() }),
    handler: async (ctx, input) => ({
      expiresSeconds: await resolveConfigOrParam(
        ctx,
        config.signedUrlExpirySeconds,
        input.expiresSeconds,
        {
          onClamp: (data) => ctx.log.warn("config.per_request_clamped", data),
        },
      ),
    }),
  });
  return { config };
});

/** A piece of a test that runs as a handler, and gets what the handler is given: an input, an event, a payload, a message. */
export type Script = (ctx: PipelineContext, given: unknown) => unknown;

/** A response, read, and the lines that were logged for its request. */
export interface Handled {
  readonly status: number;
  readonly headers: Headers;
  readonly requestId: string;
  /** Parsed JSON; `undefined` where there was none. */
  readonly body: unknown;
  readonly logs: readonly Readonly<Record<string, unknown>>[];
}

/** Whose configuration is read or stored. */
export interface Owner {
  readonly tenantId?: string;
  readonly id?: string;
}

/** What the rows prove their sentences with. */
export interface Fixture {
  /** A server with the features above. */
  readonly app: TestApp;
  /** A feature that runs scripts, for further servers: `probe.script.run` and `probe.script.write`. */
  readonly probe: ServerOptions["features"][number];
  /** The same for what follows: the event `memo.written`, the jobs `memos.memo.print` and `sort`, the channel `board`. */
  readonly memos: ServerOptions["features"][number];
  /** Runs `script` as a handler, over HTTP, and reads the response. */
  handle(
    script: Script,
    options?: TestFetchOptions & { readonly app?: TestApp; readonly query?: string },
  ): Promise<Handled>;
  /** Keeps `script` to be run by whoever has the returned name: an event, a job or a message that says `{ script: name }`. */
  keep(script: Script): string;
  /** Keeps `script` to be run by whoever asks for the returned path. */
  route(script: Script): string;
  /** Sends a request and reads the response. */
  fetch(path: string, options?: TestFetchOptions & { readonly app?: TestApp }): Promise<Handled>;
  /** What `getWithSource` tells of a key, whoever declares it. */
  read<Value>(
    handle: ConfigKeyHandle<Value>,
    owner?: Owner,
    appOverrides?: Readonly<Record<string, unknown>>,
  ): Promise<{ readonly value: unknown; readonly source: ConfigSource }>;
  /** Stores a configuration row. */
  put<Value>(
    scope: ConfigScope,
    handle: ConfigKeyHandle<Value>,
    value: unknown,
    owner?: Owner,
  ): Promise<void>;
  /** Somebody nobody has stored anything for. */
  newCaller(roles?: readonly string[]): Required<Caller>;
  /** A feature name nobody has declared keys under. */
  newFeatureName(): string;
  /** Starts another server on a stack of its own; it is closed with the fixture. */
  start(server: Server): Promise<TestApp>;
  close(): Promise<void>;
}

/** Starts the server that the rows of one group share. */
export async function startFixture(): Promise<Fixture> {
  const scripts = new Map<string, Script>();
  const run = async (ctx: PipelineContext, name: string, given: unknown) => {
    const script = scripts.get(name);
    if (script === undefined) throw new Error(`there is no script ${name}`);
    return script(ctx, given);
  };
  const [probe, memos] = [probeFeature(run), memosFeature(run)];
  const app = await startTestApp(buildServer({ features: [plans, files, probe, memos] }));
  const started = [app];
  let count = 0;

  const fetch: Fixture["fetch"] = async (path, { app: other = app, ...options } = {}) => {
    const response = await other.fetch(path, options);
    const requestId = response.headers.get("x-request-id") ?? "";
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      requestId,
      body: text === "" ? undefined : JSON.parse(text),
      logs: other.logs.filter(
        (record) => record["requestId"] === requestId && record["msg"] !== "request.completed",
      ),
    };
  };
  const keep: Fixture["keep"] = (script) => {
    const name = `s${++count}`;
    scripts.set(name, script);
    return name;
  };
  const route: Fixture["route"] = (script) => `/scripts/${keep(script)}`;
  return {
    app,
    probe,
    memos,
    fetch,
    keep,
    route,
    handle: (script, { query = "", ...options } = {}) => fetch(`${route(script)}${query}`, options),
    read: async (handle, { tenantId, id } = {}, appOverrides = {}) => {
      const { db } = await app.ctx({ id: "support", tenantId: "operators" });
      return createConfigResolver({ appOverrides }).getWithSource(
        handle.id,
        handle.definition,
        tenantId,
        id,
        db,
      );
    },
    put: (scope, { id: key }, value, { tenantId, id: userId } = {}) =>
      app.rows.put({
        scope,
        key,
        value,
        ...(tenantId === undefined ? {} : { tenantId }),
        ...(userId === undefined ? {} : { userId }),
      }),
    newCaller: (roles = []) => ({ id: `user-${++count}`, tenantId: `tenant-${count}`, roles }),
    newFeatureName: () => `feature-${++count}`,
    start: async (server) => {
      const other = await startTestApp(server);
      started.push(other);
      return other;
    },
    close: async () => {
      await Promise.all(started.map((each) => each.close()));
    },
  };
}

/** Declares keys under a feature that belongs to no server: `getWithSource` reads them all the same. */
export function declareKeys<const Keys extends Readonly<Record<string, KeyDeclaration<unknown>>>>(
  feature: string,
  keys: Keys,
): ConfigHandles<Keys> {
  return defineFeature(feature, (r) => ({ config: r.config({ keys }) })).config;
}

/** The three factories as plain JavaScript may call them. */
export const untyped = {
  system: createSystemConfig as unknown as UntypedFactory,
  tenant: createTenantConfig as unknown as UntypedFactory,
  user: createUserConfig as unknown as UntypedFactory,
} as const; // safe: what they make of wrong arguments is what is tested

type UntypedFactory = (type: unknown, options: unknown) => KeyDeclaration<unknown>;

/** Why a server with these keys cannot be built; the feature is called `wrong`. */
export function bootProblems(
  keys: Readonly<Record<string, unknown>>,
  config: Readonly<Record<string, unknown>> = {},
): readonly BootProblem[] {
  // Safe: declarations that are none are what is tested.
  const wrong = defineFeature(
    "wrong",
    (r) => void r.config({ keys: keys as Record<string, KeyDeclaration<unknown>> }),
  );
  return problemsOf(() => buildServer({ features: [wrong], config }));
}

/** The problems of the boot error that `work` throws; none where it does not throw. */
export function problemsOf(work: () => unknown): readonly BootProblem[] {
  try {
    work();
    return [];
  } catch (error) {
    if (error instanceof BootError) return error.problems;
    throw error;
  }
}

type Run = (ctx: PipelineContext, script: string, given: unknown) => Promise<unknown>;

function probeFeature(run: Run) {
  const input = z.looseObject({ id: z.string() });
  // Safe cast: a script of a query that uses an effect asserts the error that it throws.
  const handler = (ctx: QueryContext, given: z.output<typeof input>) =>
    run(ctx as PipelineContext, given.id, given);
  return defineFeature("probe", (r) => {
    r.query("script.run", { route: "GET /scripts/:id", access: access.everyone, input, handler });
    r.write("script.write", {
      route: "POST /scripts/:id",
      access: access.everyone,
      input,
      handler,
    });
    r.query("gate.signed-in", {
      route: "GET /signed-in",
      access: access.authenticated,
      handler: async (ctx) => ctx.user,
    });
    r.query("gate.admin", {
      route: "GET /admin",
      access: access.admin,
      handler: async (ctx) => ctx.user,
    });
  });
}

function memosFeature(run: Run) {
  const handler = (ctx: PipelineContext, given: z.output<typeof memo>) =>
    run(ctx, given.script, given);
  return defineFeature("memos", (r) => {
    r.event("memo.written", memo);
    r.on("memo.written", {
      name: "hear",
      handler: (ctx, event) => run(ctx, event.payload.script, event),
    });
    r.job("memo.print", { input: memo, handler });
    r.job("memo.sort", { input: memo, handler });
    r.channel("board", { input: memo, send: handler });
  });
}
