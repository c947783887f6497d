import { access, buildServer, createTenantConfig, defineFeature } from "keelson";
import { setConfig } from "keelson/operators";
import { startTestApp } from "keelson/testing";
import { expect } from "vitest";
import { files } from "./fixture.ts";
import type { Row } from "./row.ts";

/** Sections 4.1.4 and 5, as far as they speak of writing configuration. */
export const operatorRows: readonly Row[] = [
  {
    section: "4.1.4",
    sentence: "Writing an out-of-bound number to a row is rejected.",
    prove: async ({ fetch, handle, newCaller, read }) => {
      const { maxUploadSizeMb: key } = files.config;
      const operator = { ...newCaller(), roles: ["systemAdmin"] };
      for (const scope of ["tenant", "system"] as const) {
        for (const value of [0, 10_001]) {
          const put = await fetch(`/config/${key.id}`, {
            method: "PUT",
            body: { value, scope },
            as: operator,
          });
          expect(put).toMatchObject({
            status: 422,
            body: { error: "validation_error", fields: [{ field: "value" }] },
          });
          const call = await handle((ctx) => setConfig(ctx, key, value, { scope }), {
            as: operator,
          });
          expect(call.status).toBe(422);
        }
      }
      expect(await read(key, operator)).toEqual({ value: 10, source: "default" });

      await fetch(`/config/${key.id}`, { method: "PUT", body: { value: 10_000 }, as: operator });
      expect(await read(key, operator)).toEqual({ value: 10_000, source: "tenant-row" });
    },
  },
  {
    section: "5",
    sentence:
      "Config reads and writes are guarded per key by role rules (`read`, `write`), for example `access.admin` for reading and `access.systemAdmin` for writing.",
    prove: async () => {
      const limit = createTenantConfig("number", {
        default: 1,
        access: { read: access.admin, write: access.systemAdmin },
      });
      const guarded = defineFeature("guarded", (r) => void r.config({ keys: { limit } }));
      const app = await startTestApp(buildServer({ features: [guarded] }));
      try {
        const statuses = async (roles: string[]) => {
          const as = { id: "ann", tenantId: "acme", roles };
          const [read, write] = await Promise.all([
            app.fetch("/config/guarded:config:limit", { as }),
            app.fetch("/config/guarded:config:limit", { as, method: "PUT", body: { value: 2 } }),
          ]);
          return [read.status, write.status];
        };
        expect(await statuses([])).toEqual([404, 404]);
        expect(await statuses(["admin"])).toEqual([200, 403]);
        expect(await statuses(["systemAdmin"])).toEqual([200, 200]);
      } finally {
        await app.close();
      }
    },
  },
];
