import { access, buildServer, defineFeature } from "keelson";
import { z } from "zod";

const hostile = defineFeature("hostile", (r) => {
  r.write("thing.create", {
    route: "POST /things",
    access: access.everyone,
    input: z.object({ name: z.string().max(100), size: z.number().optional() }).loose(),
    handler: async (_ctx, input) => ({
      names: Object.keys(input).length,
      polluted: "polluted" in {},
    }),
  });
  r.query("thing.show", {
    route: "GET /things/:id",
    access: access.everyone,
    input: z.object({ id: z.string().max(100) }).loose(),
    handler: async (_ctx, { id }) => ({ id }),
  });
  r.write("form.take", {
    route: "POST /forms",
    access: access.everyone,
    body: "form",
    handler: async (_ctx, input) => ({ input }),
  });
  r.query("secret.show", {
    route: "GET /secrets",
    access: access.authenticated,
    handler: async () => ({ secret: true }),
  });
});

/** A server whose handlers fail for no input that they accept: what is a 500 here is a defect of the way to them. */
export const hostileServer = () =>
  buildServer({ features: [hostile], auth: { secret: "a secret that is long enough for tests" } });

/** What is wrong with an answer to a hostile request; `undefined` where nothing is. */
export function wrongWith(status: number, body: string): string | undefined {
  if (status >= 500) return `${status}: ${body}`;
  if (status < 400) return undefined;
  try {
    const { error, message, requestId } = JSON.parse(body) as Record<string, unknown>;
    return [error, message, requestId].every(
      (member) => typeof member === "string" && member !== "",
    )
      ? undefined
      : `no uniform body: ${body}`;
  } catch {
    return `no JSON: ${body}`;
  }
}
