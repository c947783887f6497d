import type { Clock } from "../../base/process/clock.ts";
import { forgetOldest } from "../../base/process/forget-oldest.ts";

/** The encoded tenant whose rows a session may access, or `across` for all tenants. */
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
  /** Gets new credentials, which must be valid for {@link sessionSeconds}. */
  readonly assume: (tag: SessionTag) => Promise<SessionCredentials>;
  readonly clock: Clock;
  /** Called if a renewal fails while the current credentials are still valid. */
  readonly onStale: (tag: SessionTag, error: unknown) => void;
  readonly most?: number;
}

/** Lifetime of a session: the maximum in AWS if one role assumes another. */
export const sessionSeconds = 3_600;
/** Each session takes about 2 KB; the least recently used are evicted. */
export const maxSessions = 1_000;
/** Remaining lifetimes below which credentials are renewed, and below which they are not used. */
const [renewalMs, leastMs] = [300_000, 60_000];
/** For so long after a failure, callers get the same error without a new attempt. */
const failureMs = 1_000;

interface Session {
  held?: { readonly credentials: SessionCredentials; readonly takenMs: number };
  flight?: Promise<SessionCredentials> | undefined;
  failure?: { readonly error: unknown; readonly atMs: number } | undefined;
}

/**
 * Renews credentials in the background. Measures their age only by this process's clock, so the
 * clock's offset from AWS does not matter.
 */
export function createSessions({ assume, clock, onStale, most = maxSessions }: SessionsOptions) {
  const sessions = new Map<string, Session>();

  /** @throws the error of `assume`, which is not called again for one second after a failure. */
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
    forgetOldest(sessions, most);
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

/** Returns 0 if the clock was set back, because the age is then unknown. */
function leftOf({ takenMs }: { readonly takenMs: number }, nowMs: number): number {
  return nowMs < takenMs ? 0 : takenMs + sessionSeconds * 1_000 - nowMs;
}

function failureOf({ failure }: Session, nowMs: number): Session["failure"] {
  return failure !== undefined && nowMs >= failure.atMs && nowMs < failure.atMs + failureMs
    ? failure
    : undefined;
}
