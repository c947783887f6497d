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

/** A server whose handlers never fail for input that they accept: a 500 is a defect of the way to them. */
export const hostileServer = () =>
  buildServer({ features: [hostile], auth: { secret: "a secret that is long enough for tests" } });

/** The defect of a response to a hostile request; `undefined` if it has none. */
export function wrongWith(status: number, body: string): string | undefined {
  // 501 refuses a Transfer-Encoding that no server has to know.
  if (status >= 500 && status !== 501) return `${status}: ${body}`;
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
