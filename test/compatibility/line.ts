// A line of the table: data that an earlier process leaves, and a later process's use of it.
import { createHash } from "node:crypto";
import type { expect } from "vitest";
import type { Caller, Host, HostAnswer, HostRequest } from "./host.ts";
import type { Store } from "./store.ts";
import type { Version } from "./version.ts";
import type { World } from "./world.ts";

/** One of the two who meet. */
export interface Party {
  readonly version: Version;
  readonly host: Host;
  /** The same with the key ring of before the rotation. */
  readonly earlier: Host;
  /** The same, which waits only a moment for a duplicate. */
  readonly hasty: Host;
  /** The same, which seals secrets for the versions of their rows. */
  binding(): Host;
  readonly store: Store;
  readonly world: World;
  /** A signed-in caller of a tenant that no other line has. */
  readonly ann: Caller;
  /** A caller of the same tenant who may do everything. */
  readonly operator: Caller;
  /** A name that no other line has. */
  readonly name: string;
  /** Makes a host work without a bus, so that its events stay in the outbox. */
  withoutBus<Result>(work: (host: Host) => Promise<Result>): Promise<Result>;
}

/** The one of the two that checks. */
export interface CheckingParty extends Party {
  readonly expect: typeof expect;
}

export interface Line {
  readonly name: string;
  /** Time by which the left data ages before they meet, in milliseconds. */
  readonly ageMs?: number;
  /** Versions that cannot leave it, and do not know it: those that a rolling deployment has to be without. */
  readonly without?: readonly string[];
  /** Returns what `meet` compares with, which is kept as JSON. */
  leave(party: Party): Promise<unknown>;
  meet(party: CheckingParty, left: unknown): Promise<void>;
}

/** Longest wait for a condition. */
export const patience = { timeout: 20_000 };

/** Makes a line. */
export function line<Left>(
  name: string,
  leave: (party: Party) => Promise<Left>,
  meet: (party: CheckingParty, left: Left) => Promise<void>,
  options: Pick<Line, "ageMs" | "without"> = {},
): Line {
  return { name, leave, meet: (party, left) => meet(party, left as Left), ...options }; // safe: `leave` has left it, maybe by way of JSON
}

/** A request that has succeeded. */
export async function sent(host: Host, path: string, request: HostRequest): Promise<HostAnswer> {
  const answer = await host.send(path, request);
  if (answer.status >= 400)
    throw new Error(`${path} answered ${answer.status} on ${host.version}: ${answer.body}`);
  return answer;
}

/** The same, as the JSON of its body. */
export async function sentJson<Body>(
  host: Host,
  path: string,
  request: HostRequest,
): Promise<Body> {
  return JSON.parse((await sent(host, path, request)).body) as Body; // the tests' server answers so
}

/** A string to compare with: a long one is kept as its hash. */
export function comparable(text: string): string {
  return text.length < 10_000
    ? text
    : `sha256:${createHash("sha256").update(text).digest("base64url")}`;
}
