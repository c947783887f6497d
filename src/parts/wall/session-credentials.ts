import type { Clock } from "../../base/process/clock.ts";

/**
 * The encoded tenant whose rows the session may access, or `across` for the rows of all tenants.
 */
export interface SessionTag {
  readonly key: "tenant" | "across";
  readonly value: string;
}

export interface SessionCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string;
}

interface SessionsOptions {
  /** The credentials must be valid for {@link sessionSeconds}. */
  readonly assume: (tag: SessionTag) => Promise<SessionCredentials>;
  readonly clock: Clock;
  /** Called if a renewal fails while the current credentials are still valid. */
  readonly onStale: (tag: SessionTag, error: unknown) => void;
  /** Cached sessions. Default {@link maxSessions}. */
  readonly most?: number;
}

/** The AWS maximum if one role assumes another. */
export const sessionSeconds = 3_600;
/** The least recently used are evicted. Each takes about 2 KB. */
export const maxSessions = 1_000;
/** Remaining lifetimes at which a session is renewed, and no longer used. */
const [renewalMs, leastMs] = [300_000, 60_000];
/** How long a failure is repeated without a new attempt. */
const failureMs = 1_000;

interface Session {
  held?: { readonly credentials: SessionCredentials; readonly takenMs: number };
  flight?: Promise<SessionCredentials> | undefined;
  failure?: { readonly error: unknown; readonly atMs: number } | undefined;
}

/**
 * Caches the credentials of sessions. Concurrent callers share one call per session. Renews in the
 * background five minutes before the end. Ages are measured with this process's clock alone, so its
 * offset from AWS's does not matter.
 */
export function createSessions({ assume, clock, onStale, most = maxSessions }: SessionsOptions) {
  const sessions = new Map<string, Session>();

  /** @throws the error of `assume`, and repeats it for one second. */
  return async (tag: SessionTag): Promise<SessionCredentials> => {
    const session = usedLast(`${tag.key}=${tag.value}`);
    const nowMs = clock.now();
    const failure = failureOf(session, nowMs);
    const { held } = session;
    if (held !== undefined && leftOf(held, nowMs) > leastMs) {
      const isDue =
        leftOf(held, nowMs) <= renewalMs && session.flight === undefined && failure === undefined;
      if (isDue) take(session, tag).catch((error: unknown) => onStale(tag, error));
      return held.credentials;
    }
    if (failure !== undefined) throw failure.error;
    return take(session, tag);
  };

  function usedLast(key: string): Session {
    const session: Session = sessions.get(key) ?? {};
    sessions.delete(key);
    sessions.set(key, session);
    if (sessions.size > most) sessions.delete(sessions.keys().next().value as string); // safe: the map is not empty
    return session;
  }

  function take(session: Session, tag: SessionTag): Promise<SessionCredentials> {
    if (session.flight !== undefined) return session.flight;
    const takenMs = clock.now();
    const flight = assume(tag).then(
      (credentials) => {
        session.held = { credentials, takenMs };
        session.failure = undefined;
        session.flight = undefined;
        return credentials;
      },
      (error: unknown) => {
        session.failure = { error, atMs: clock.now() };
        session.flight = undefined;
        throw error;
      },
    );
    session.flight = flight;
    return flight;
  }
}

/** If the clock was set back, the age is unknown and nothing is left. */
function leftOf({ takenMs }: { readonly takenMs: number }, nowMs: number): number {
  return nowMs < takenMs ? 0 : takenMs + sessionSeconds * 1_000 - nowMs;
}

function failureOf({ failure }: Session, nowMs: number): Session["failure"] {
  return failure !== undefined && nowMs >= failure.atMs && nowMs < failure.atMs + failureMs
    ? failure
    : undefined;
}
