import { randomBytes } from "node:crypto";
import { signToken } from "../../src/base/identity/token.ts";
import { systemClock } from "../../src/base/process/clock.ts";
import { secret } from "./server.ts";

/** A tenant, whose IDs are found nowhere else: each contains the run's nonce and the tenant's number. */
export interface SoakTenant {
  readonly n: number;
  readonly id: string;
  readonly motto: string;
  readonly tokens: readonly [string, ...string[]];
  /** Returns a new ID of the tenant. */
  newId(kind: "entry" | "request"): string;
}

export interface Tenants {
  readonly all: readonly [SoakTenant, ...SoakTenant[]];
  /** Returns the numbers of the tenants whose IDs the string contains. */
  numbersIn(text: string): ReadonlySet<number>;
}

const [tenantCount, usersPerTenant] = [6, 2];

export async function createTenants(): Promise<Tenants> {
  const nonce = randomBytes(6).toString("hex");
  const ids = new RegExp(`(?:tenant|user|entry|request)-${nonce}-(\\d+)-`, "g");
  const tenants = await Promise.all(
    Array.from({ length: tenantCount }, (_, n) => createTenant(nonce, n)),
  );
  return {
    all: tenants as [SoakTenant, ...SoakTenant[]], // safe: there is at least one
    numbersIn: (text) => new Set([...text.matchAll(ids)].map(([, n]) => Number(n))),
  };
}

async function createTenant(nonce: string, n: number): Promise<SoakTenant> {
  const own = `${nonce}-${n}-`;
  const tenantId = `tenant-${own}`;
  const tokenOf = (user: number) =>
    signToken(
      { secret, tenantId, userId: `user-${own}${user}`, roles: [], expiresInSeconds: 90 * 86_400 },
      systemClock,
    );
  const tokens = await Promise.all(
    Array.from({ length: usersPerTenant }, (_, user) => tokenOf(user)),
  );
  let last = 0;
  return {
    n,
    id: tenantId,
    motto: `we are ${tenantId}`,
    tokens: tokens as [string, ...string[]], // safe: there is at least one
    newId: (kind) => `${kind}-${own}${++last}`,
  };
}
