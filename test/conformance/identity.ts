import { buildServer } from "keelson";
import { expect } from "vitest";
import { withLambda } from "./lambda.ts";
import type { Row } from "./row.ts";

/** Section 5, as far as requests go. */
export const identityRows: readonly Row[] = [
  {
    section: "5",
    sentence: "… request logging derive `tenantId` and `userId` from a JWT of the caller.",
    prove: async ({ app, fetch, handle, newCaller, probe, route }) => {
      const as = newCaller();
      const forged = {
        "x-tenant-id": "victim",
        "x-user-id": "victim",
        "x-forwarded-user": "victim",
      };
      const script = (ctx: { log: { info(msg: string): void } }) => void ctx.log.info("seen");

      const signedIn = await handle(script, { as, headers: forged });
      expect(signedIn.logs).toEqual([
        expect.objectContaining({ msg: "seen", tenantId: as.tenantId, userId: as.id }),
      ]);
      const nobody = await handle(script, { headers: forged });
      expect(nobody.logs).toEqual([expect.not.objectContaining({ tenantId: expect.anything() })]);

      // What the framework itself logs of a request names the caller too, and a token that does not verify names nobody.
      const refused = await fetch("/admin", { as, headers: forged });
      expect(refused.logs).toMatchObject([
        { msg: "request.failed", status: 403, tenantId: as.tenantId, userId: as.id },
      ]);
      const claims = Buffer.from(
        JSON.stringify({ sub: "victim", tenantId: "victim", exp: 4e9 }),
      ).toString("base64url");
      for (const token of [
        `eyJhbGciOiJub25lIn0.${claims}.x`,
        `eyJhbGciOiJIUzI1NiJ9.${claims}.AAAA`,
      ]) {
        const unverified = await fetch("/signed-in", {
          headers: { authorization: `Bearer ${token}` },
        });
        expect([unverified.status, JSON.stringify(unverified.logs).includes("victim")]).toEqual([
          401,
          false,
        ]);
      }

      await withLambda(buildServer({ features: [probe] }), app.env, async ({ invoke, logs }) => {
        await invoke({ path: route(script), as, headers: forged });
        expect(logs()).toEqual([
          expect.objectContaining({ msg: "seen", tenantId: as.tenantId, userId: as.id }),
        ]);
      });
    },
  },
];
