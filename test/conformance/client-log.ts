import type { Logger } from "keelson";
import { type Logger as ClientLoggerInterface, createClientLogger } from "keelson/browser";
import { expect, expectTypeOf } from "vitest";
import { signToken } from "../../src/base/identity/token.ts";
import type { Fixture } from "./fixture.ts";
import type { Row } from "./row.ts";

/** Sends a record as a caller of its own, and returns the lines that it became. */
async function logged({ app, newCaller, fetch }: Fixture, record: object) {
  const caller = newCaller();
  const answer = await fetch("/log", { method: "POST", body: record, as: caller });
  const lines = app.logs.filter(
    ({ source, userId }) => source === "client" && userId === caller.id,
  );
  return { caller, answer, lines };
}

/** Section 4.2, the logs of browsers, and what 1, 2.5 and 5 say of them. */
export const clientLogRows: readonly Row[] = [
  {
    section: "1",
    sentence: "One logger interface is used on server and client.",
    prove: async () => {
      expectTypeOf<ClientLoggerInterface>().toEqualTypeOf<Logger>();
    },
  },
  {
    section: "2.5",
    sentence: "The interface is identical on server and client.",
    prove: async ({ handle }) => {
      const client = createClientLogger({ url: "http://127.0.0.1:1/log", token: () => undefined });
      let members: string[] = [];
      await handle((ctx) => {
        members = Object.keys(ctx.log.child({}));
      });
      expect(Object.keys(client.child({})).sort()).toEqual([
        "child",
        "debug",
        "error",
        "info",
        "warn",
      ]);
      expect(members.sort()).toEqual(Object.keys(client.child({})).sort());
      await client.close();
    },
  },
  {
    section: "4.2",
    sentence: "Purpose: receives client logs in production.",
    prove: async ({ app, newCaller }) => {
      const caller = newCaller();
      const secret = String(app.env["KEELSON_AUTH_SECRET"]);
      const token = await signToken(
        { secret, userId: caller.id, tenantId: caller.tenantId, roles: [] },
        app.clock,
      );
      const url = new URL("/log", (await app.fetch("/health/live")).url).href;
      const client = createClientLogger({ url, token, environment: "production" });
      client.info("page.opened", { path: "/cart" });
      await client.flush();
      await client.close();
      expect(app.logs).toContainEqual(
        expect.objectContaining({
          level: "info",
          msg: "page.opened",
          path: "/cart",
          userId: caller.id,
        }),
      );
    },
  },
  {
    section: "4.2",
    sentence:
      "Request payload: JSON object with `level` (string: info, warn, error or debug), `msg` (string), and additional free-form context fields.",
    prove: async (fixture) => {
      for (const level of ["info", "warn", "error", "debug"]) {
        const { lines } = await logged(fixture, {
          level,
          msg: "page.said",
          view: { name: "cart", items: [1, 2] },
        });
        expect(lines).toMatchObject([
          { level, msg: "page.said", view: { name: "cart", items: [1, 2] } },
        ]);
      }
      for (const wrong of [
        { level: "fatal", msg: "x" },
        { level: "info" },
        { level: "info", msg: 1 },
        { msg: "x" },
      ]) {
        const { answer, lines } = await logged(fixture, wrong);
        expect([answer.status, lines]).toEqual([422, []]);
      }
    },
  },
  {
    section: "4.2",
    sentence:
      "The server logs the entry with `tenantId` and `userId` taken from the caller's token.",
    prove: async (fixture) => {
      const { caller, lines } = await logged(fixture, {
        level: "info",
        msg: "x",
        tenantId: "forged",
        userId: "forged",
      });
      expect(lines).toMatchObject([{ tenantId: caller.tenantId, userId: caller.id }]);
    },
  },
  {
    section: "5",
    sentence: "The client-log endpoint and …",
    prove: async ({ fetch }) => {
      expect(
        (await fetch("/log", { method: "POST", body: { level: "info", msg: "x" } })).status,
      ).toBe(401);
    },
  },
];
