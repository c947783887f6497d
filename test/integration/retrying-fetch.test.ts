import fc from "fast-check";
import { access, buildServer, defineFeature, PipelineError, reply } from "keelson";
import { retryingFetch } from "keelson/fetch";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { z } from "zod";
import { runs } from "../support/runs.ts";

/** What becomes of an attempt. */
type Fate =
  | "arrives"
  | "never arrives"
  | "answer lost"
  | "gateway too late"
  | "server busy"
  | "handler refuses";
const fates: readonly Fate[] = [
  "arrives",
  "never arrives",
  "answer lost",
  "gateway too late",
  "server busy",
  "handler refuses",
];

/** How often the handler did what it is there for, by name. */
const applied = new Map<string, number>();
const refused = new Set<string>();

const notes = defineFeature("notes", (r) => {
  r.write("note.write", {
    route: "POST /notes",
    access: access.authenticated,
    input: z.object({ name: z.string() }),
    handler: async (_ctx, { name }) => {
      if (refused.delete(name))
        throw new PipelineError("Busy", 503, {
          code: "notes_busy",
          headers: { "retry-after": "0" },
        });
      await new Promise(setImmediate); // where a duplicate would come in between
      const times = (applied.get(name) ?? 0) + 1;
      applied.set(name, times);
      return reply({ name, times }, { status: 201 });
    },
  });
});

let app: TestApp;
let url = "";
let authorization = "";
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [notes] }));
  url = `${new URL((await app.fetch("/health/live")).url).origin}/notes`;
  authorization = `Bearer ${await app.token({ id: "ann", tenantId: "acme" })}`;
  vi.spyOn(Math, "random").mockReturnValue(0); // no pauses
});
afterAll(async () => {
  vi.restoreAllMocks();
  await app.close();
});

let names = 0;

test(`${runs(200)} sequences of failures apply a write at most once, and all its attempts carry the same key, ID and body`, async () => {
  const seen = new Set<Fate>();
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...fates), { maxLength: 6 }), async (plan) => {
      const name = `note ${++names}`;
      const sent: string[] = [];
      const underWay: Promise<unknown>[] = [];
      const left = [...plan];
      const unreliable: typeof fetch = async (input, init) => {
        const request = new Request(input, init);
        const { headers } = request;
        sent.push(
          `${headers.get("idempotency-key")} ${headers.get("x-request-id")} ${await request.clone().text()}`,
        );
        const fate = left.shift() ?? "arrives";
        seen.add(fate);
        if (fate === "never arrives") throw new TypeError("fetch failed");
        if (fate === "server busy") return Response.json({ error: "overloaded" }, { status: 503 });
        if (fate === "handler refuses") refused.add(name);
        const answer = fetch(request);
        if (fate !== "arrives" && fate !== "handler refuses")
          underWay.push(answer.then((response) => response.body?.cancel()));
        if (fate === "gateway too late") return new Response("Gateway Timeout", { status: 504 });
        const response = await answer;
        if (fate === "answer lost") throw new TypeError("fetch failed");
        return response;
      };

      const init = {
        method: "POST",
        headers: { authorization, "content-type": "application/json" },
      };
      const outcome = await retryingFetch({ fetch: unreliable })(url, {
        ...init,
        body: JSON.stringify({ name }),
      }).catch(String);
      await Promise.all(underWay);

      expect(new Set(sent).size).toBe(1);
      expect(sent[0]).toMatch(/^\w{32} \w{32} \{"name":"note \d+"\}$/);
      expect(applied.get(name) ?? 0).toBeLessThanOrEqual(1);
      if (plan.length < 5) {
        expect(outcome).toMatchObject({ status: 201 });
        expect(applied.get(name)).toBe(1);
      }
      refused.delete(name);
    }),
    { numRuns: runs(200), examples: fates.map((fate) => [[fate]]) },
  );
  expect([...seen].sort()).toEqual([...fates].sort());
});
