import {
  AccessDeniedError,
  CommitConditionError,
  ConflictError,
  NotFoundError,
} from "../../base/errors/errors.ts";
import { quoted } from "../../base/errors/quoted.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { Lazy } from "../../base/process/lazy.ts";
import type { CommitItem } from "../../base/types/database.ts";
import { type ApiKey, type ApiKeyStore, maxKeys } from "../../parts/api-keys/api-key.ts";
import type { ApiKeys } from "../../parts/api-keys/api-keys.ts";
import { generateSecret, hashOfSecret } from "../../parts/api-keys/secret.ts";
import { reply } from "../../parts/http/reply.ts";
import { isReply } from "../../parts/http/response.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { Adapters } from "../runtime/adapters.ts";
import { type ApiKeyInput, readKey, readOverlap } from "./api-key-input.ts";

const maxAttempts = 5;

/** Members of a runtime that the actions use. */
export interface ApiKeyRuntime {
  readonly adapters: { open(): Promise<Pick<Adapters, "apiKeys">> };
  readonly clock: Clock;
  readonly apiKeys: Lazy<ApiKeys>;
}

export function createApiKeyActions(runtime: ApiKeyRuntime) {
  const { adapters, clock } = runtime;
  /** Secrets by the results that go without them into the stored answer. */
  const secrets = new WeakMap<object, string>();
  const open = async () => (await adapters.open()).apiKeys.open();

  const create = async (ctx: PipelineContext, given: ApiKeyInput) => {
    const nowMs = clock.now();
    const wanted = readKey(given);
    assertHolds(ctx, wanted.roles);
    const secret = generateSecret();
    const { seconds } = wanted;
    const key: ApiKey = {
      id: `key_${crypto.randomUUID()}`,
      tenantId: tenantOf(ctx),
      name: wanted.name,
      roles: wanted.roles,
      createdMs: nowMs,
      expiresMs: seconds === undefined ? undefined : nowMs + seconds * 1_000,
      lastUsedMs: undefined,
      hash: hashOfSecret(secret),
      formerHash: undefined,
    };
    const result = reply(shown(key), { status: 201 });
    secrets.set(result, secret);
    try {
      await ctx.commit((await open()).added(key), result);
    } catch (error) {
      if (!(error instanceof CommitConditionError)) throw error;
      const message = `The tenant has ${maxKeys} API keys; delete unused and expired ones`;
      throw new ConflictError("too_many_api_keys", { message, cause: error });
    }
    ctx.log.info("api_key.created", { keyId: key.id, roles: key.roles });
    return result;
  };

  const rotate = async (ctx: PipelineContext, { id, ...given }: ApiKeyInput) => {
    const overlapSeconds = readOverlap(given);
    const { key, result } = await changeKey(runtime, ctx, id, (key, store) => {
      const nowMs = clock.now();
      assertHolds(ctx, key.roles);
      const { expiresMs = Number.POSITIVE_INFINITY } = key;
      if (nowMs >= expiresMs)
        throw new ConflictError("api_key_expired", "The API key has expired; create another");
      const secret = generateSecret();
      const result = reply(shown(key), { status: 200 });
      secrets.set(result, secret);
      const formerEndsMs = Math.min(nowMs + overlapSeconds * 1_000, expiresMs);
      const rotation = { hash: hashOfSecret(secret), formerEndsMs, nowMs };
      return { items: store.rotated(key, rotation), result };
    });
    ctx.log.info("api_key.rotated", { keyId: key.id, overlapSeconds });
    return result;
  };

  const revoke = async (ctx: PipelineContext, { id }: ApiKeyInput) => {
    const { key } = await changeKey(runtime, ctx, id, (key, store) => ({
      items: store.removed(key),
      result: undefined,
    }));
    ctx.log.info("api_key.revoked", { keyId: key.id });
  };

  const list = async (ctx: PipelineContext) => {
    const keys = await (await open()).list(tenantOf(ctx));
    return { items: keys.map((key) => ({ ...shown(key), lastUsedAt: timeOf(key.lastUsedMs) })) };
  };

  const actions = { create, list, rotate, revoke };
  return {
    run: (name: string, ctx: PipelineContext, given: unknown): Promise<unknown> => {
      if (ctx.user.kind === "apiKey")
        throw new AccessDeniedError("api-keys", "An API key cannot manage API keys");
      // Safe casts: the name is a route's, and a handler without a schema gets an object.
      const action = name.slice(name.lastIndexOf(".") + 1) as keyof typeof actions;
      return actions[action](ctx, given as ApiKeyInput);
    },
    /** Adds the secret, which the stored answer lacks. */
    revealed: (result: unknown): unknown => {
      const key = isReply(result) ? secrets.get(result) : undefined;
      if (!isReply(result) || key === undefined) return result;
      const { status = 200, body } = result;
      const headers = { "cache-control": "no-store" };
      return reply({ ...Object(body), key }, { status, headers });
    },
  };
}

interface Change {
  readonly items: readonly CommitItem[];
  readonly result: object | undefined;
}

/** Changes a key. If another change came first, reads the key again. */
async function changeKey(
  { adapters, apiKeys }: ApiKeyRuntime,
  ctx: PipelineContext,
  id: unknown,
  decide: (key: ApiKey, store: ApiKeyStore) => Change,
) {
  const store = await (await adapters.open()).apiKeys.open();
  for (let attempt = 1; ; attempt += 1) {
    const key = await store.read(tenantOf(ctx), String(id));
    if (key === undefined) throw new NotFoundError("API key", String(id).slice(0, 256));
    const { items, result } = decide(key, store);
    try {
      await ctx.commit(items, result);
      return { key, result };
    } catch (error) {
      if (!(error instanceof CommitConditionError) || attempt === maxAttempts) throw error;
    } finally {
      // Even after an error, since the change may have happened.
      (await apiKeys.open()).forget(key.id);
    }
  }
}

function tenantOf({ user }: PipelineContext): string {
  return user.tenantId as string; // safe: the routes require a caller with a tenant
}

function shown({ id, name, roles, createdMs, expiresMs }: ApiKey) {
  const [createdAt, expiresAt] = [timeOf(createdMs), timeOf(expiresMs)];
  return { id, name, roles, createdAt, expiresAt };
}

function timeOf(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}

/** @throws AccessDeniedError if the caller lacks one of the roles. */
function assertHolds({ user }: PipelineContext, roles: readonly string[]): void {
  const lacking = roles.find((role) => !user.roles.includes(role));
  if (lacking === undefined) return;
  const message = `An API key cannot have a role that its creator lacks: ${quoted(lacking)}`;
  throw new AccessDeniedError("api-keys", message);
}
