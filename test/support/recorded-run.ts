import type { EffectRun } from "../../src/app/ctx/effect-run.ts";
import type { User } from "../../src/base/identity/access.ts";
import type { Logger } from "../../src/base/log/logger.ts";
import type { FairMode } from "../../src/parts/messages/job-route.ts";
import type { RunParts } from "../../src/parts/once/claimed-run.ts";

export const nowMs = 1_700_000_000_000;

export interface RecordedOptions {
  readonly isSystem?: boolean;
  readonly user?: User;
  /** Declarations by name. Default: none. */
  readonly events?: Readonly<Record<string, unknown>>;
  readonly jobs?: Readonly<Record<string, unknown>>;
  readonly channels?: Readonly<Record<string, unknown>>;
  /** Replaces parts of the run, such as a commit that fails. */
  readonly run?: Partial<RunParts>;
  readonly adapters?: Readonly<Record<string, unknown>>;
  /** Default `off`. */
  readonly fairMode?: FairMode;
  readonly runs?: Readonly<Record<string, unknown>>;
}

/** Parts of a run whose commits, messages and log lines a test reads, in the order of their calls. */
export function recordedRun(options: RecordedOptions = {}) {
  const did: unknown[][] = [];
  const note =
    (what: string) =>
    async (...given: unknown[]) =>
      void did.push([what, ...given]);
  const level =
    (name: keyof Logger) =>
    (message: string, data?: Record<string, unknown>): void =>
      void did.push([`log.${name}`, message, data]);
  const log: Logger = {
    debug: level("debug"),
    info: level("info"),
    warn: level("warn"),
    error: level("error"),
    child: () => log,
  };
  const map = (declared: Readonly<Record<string, unknown>> = {}) =>
    new Map(Object.entries(declared));
  const proof = { key: "k1", mac: "mac" };
  const scope = {
    runtime: {
      server: {
        registry: {
          events: map(options.events),
          jobs: map(options.jobs),
          channels: map(options.channels),
          consumers: map(),
          hasWebhooks: false,
        },
      },
      channels: map(options.channels),
      deliveryJob: { dedupKey: ({ key }: { readonly key: string }) => key },
      clock: { now: () => nowMs },
      messages: {
        open: async () => ({ signEvent: async () => proof, signJob: async () => proof }),
      },
    },
    user: options.user ?? { id: "ann", tenantId: "acme", roles: [] },
    handler: "notes.note.do",
    isSystem: options.isSystem ?? false,
    trace: { headers: () => ({ traceparent: "00-trace" }) },
    spans: {
      named: (id: string) => void did.push(["named", id]),
      producing: (effects: unknown) => effects,
    },
  };
  const run: RunParts = {
    signal: undefined,
    commit: note("commit"),
    commitApart: note("commitApart"),
    isCommitUncertain: () => false,
    held: () => undefined,
    seed: () => "seed",
    ...options.run,
  };
  const parts = {
    scope,
    log,
    adapters: {
      outbox: { items: ({ eventId }: { readonly eventId: string }) => [{ Put: eventId }] },
      messaging: {
        open: async () => ({
          ...{ fairMode: options.fairMode ?? "off", jobs: { send: note("send") } },
          fairJobs: { send: note("fair send") },
        }),
      },
      ...options.adapters,
    },
    runs: {
      outbox: {
        row: (event: object, text: string) => ({ shard: "shard#0", sort: "0", ...event, text }),
        dispatch: note("dispatch"),
      },
      sendCommitted: note("sendCommitted"),
      ...options.runs,
    },
    run,
  };
  // Safe cast: effects only read these members of their scope, adapters and services.
  return { did, parts: parts as unknown as Omit<EffectRun, "cause" | "ledger"> };
}
