import type { Clock } from "../../base/process/clock.ts";

/** What a session is tagged with: the tenant whose rows it is for, as keys have it, or `across` for those of every tenant. */
export interface SessionTag {
  readonly key: "tenant" | "across";
  readonly value: string;
}

/** Credentials of a session. */
export interface SessionCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string;
}

/** What credentials of sessions are taken by, and how long they are kept. */
export interface SessionsOptions {
  /** Takes credentials that last for {@link sessionSeconds}. */
  readonly assume: (tag: SessionTag) => Promise<SessionCredentials>;
  readonly clock: Clock;
  /** Called where credentials could not be renewed in time, and still serve. */
  readonly onStale: (tag: SessionTag, error: unknown) => void;
  /** Default {@link maxSessions}. */
  readonly most?: number;
}

/** How long a session lasts, in seconds: as long as one that is assumed by another role may. */
export const sessionSeconds = 3_600;
/** How many sessions are kept, the ones used last: some 2 KB each. */
export const maxSessions = 1_000;
/** What is left of a session when it is renewed, and when it is not used any more, in milliseconds. */
const [renewalMs, leastMs] = [300_000, 60_000];
/** How long a failure stands for the next callers, in milliseconds. */
const failureMs = 1_000;

interface Held {
  readonly credentials: SessionCredentials;
  readonly takenMs: number;
}

interface Failure {
  readonly error: unknown;
  readonly atMs: number;
}

interface Session {
  held?: Held;
  flight?: Promise<SessionCredentials> | undefined;
  failure?: Failure | undefined;
}

/**
 * Creates what finds the credentials of a session: those that are held, or new ones. One call is under way for each session, however
 * many ask. Five minutes before they expire credentials are renewed while they still serve. How old they are is told by this
 * process's clock alone: whether it agrees with AWS's does not matter.
 */
export function createSessions({ assume, clock, onStale, most = maxSessions }: SessionsOptions) {
  const sessions = new Map<string, Session>();

  /** @throws whatever `assume` throws, also for a second after it did. */
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
    if (sessions.size > most) sessions.delete(sessions.keys().next().value as string); // safe: it has one
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

/** A clock that was set back says nothing of how old they are. */
function leftOf({ takenMs }: Held, nowMs: number): number {
  return nowMs < takenMs ? 0 : takenMs + sessionSeconds * 1_000 - nowMs;
}

/** The failure that stands for this moment's callers. */
function failureOf({ failure }: Session, nowMs: number): Failure | undefined {
  return failure !== undefined && nowMs >= failure.atMs && nowMs < failure.atMs + failureMs
    ? failure
    : undefined;
}
