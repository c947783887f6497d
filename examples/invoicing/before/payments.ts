// Without `r.webhook`: the handler verifies the signature, finds a repeat and the tenant itself.
import { createHmac, timingSafeEqual } from "node:crypto";
import { QueryCommand } from "@aws-sdk/lib-dynamodb";
import { access, CommitConditionError, defineFeature, FrameworkError, reply } from "keelson";
import * as z from "zod";

const event = z.object({ id: z.string(), account: z.string().optional(), cents: z.int() });
const toleranceSeconds = 300;

/** Stripe's scheme: `t=<seconds>,v1=<hex>`, with a second `v1` while the secret is rotated. */
function isSigned(header: string, body: Uint8Array, secret: string): boolean {
  const parts = header.split(",").map((part) => part.split("="));
  const time = Number(parts.find(([name]) => name === "t")?.[1]);
  if (!(Math.abs(Date.now() / 1_000 - time) <= toleranceSeconds)) return false;
  const expected = createHmac("sha256", secret).update(`${time}.`).update(body).digest();
  return parts.some(([name, value = ""]) => {
    const given = Buffer.from(value, "hex");
    return name === "v1" && given.length === expected.length && timingSafeEqual(given, expected);
  });
}

export const createPaymentsFeature = (secret: string) =>
  defineFeature("payments", (r) => {
    // The request has no caller, so the rows are of no tenant, and the handlers keep tenants apart.
    const payments = r.table("payments", {
      partitionKey: "tenantId",
      sortKey: "id",
      tenant: false,
    });
    const seen = r.table("seen-events", { partitionKey: "id", tenant: false });
    r.write("payment.received", {
      route: "POST /hooks/stripe",
      access: access.everyone,
      once: false, // the sender has no Idempotency-Key
      body: "bytes", // the signature covers the exact bytes
      handler: async (ctx) => {
        const { headers = {}, rawBody = new Uint8Array() } = ctx.request ?? {};
        if (!isSigned(headers["stripe-signature"] ?? "", rawBody, secret))
          throw new FrameworkError("unauthenticated", "The signature is not valid");
        let parsed: z.infer<typeof event>;
        try {
          parsed = event.parse(JSON.parse(Buffer.from(rawBody).toString()));
        } catch (cause) {
          throw new FrameworkError("malformed_request", "The event is not valid", { cause });
        }
        const { id, account: tenantId, cents } = parsed;
        const done = reply(undefined, { status: 204 });
        if (tenantId === undefined) return done;
        const isNew = "attribute_not_exists(id)";
        const first = { TableName: seen.name, Item: { id }, ConditionExpression: isNew };
        const payment = { TableName: payments.name, Item: { tenantId, id, cents } };
        try {
          return await ctx.commit([{ Put: first }, { Put: payment }], done);
        } catch (error) {
          if (error instanceof CommitConditionError) return done; // a repeat
          throw error;
        }
      },
    });
    r.query("payment.list", {
      route: "GET /payments",
      access: access.authenticated,
      handler: async (ctx) => {
        const { Items = [] } = await ctx.db.send(
          new QueryCommand({
            TableName: payments.name,
            KeyConditionExpression: "tenantId = :tenantId",
            ExpressionAttributeValues: { ":tenantId": ctx.user.tenantId },
          }),
        );
        return Items.map(({ id, cents }) => ({ id: String(id), cents: Number(cents) }));
      },
    });
  });
