import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { server } from "../../examples/files/server.ts";

const ann = { id: "ann", tenantId: "acme" };

describe("the sample's chain of a file, its scan, and the message about it", () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp(server);
  });
  afterAll(() => app.close());

  test("POST /files leads to one event, one job and one delivery, each caused by the previous one", async () => {
    const answer = await app.fetch("/files", {
      body: { name: "a.txt", sizeMb: 1 },
      as: ann,
      headers: { "x-request-id": "chain-1" },
    });
    expect(answer.status).toBe(201);
    const { id } = (await answer.json()) as { id: string };
    await app.settled();
    expect(app.events).toEqual([
      expect.objectContaining({
        kind: "shared",
        type: "file.created",
        payload: { id, sizeMb: 1, requestId: "chain-1" },
        causedBy: "chain-1",
        origRequestId: "chain-1",
        tenantId: "acme",
        userId: "ann",
      }),
    ]);
    const [event] = app.events;
    expect(app.jobs).toEqual([
      expect.objectContaining({
        name: "files.file.scan",
        payload: { id },
        causedBy: event?.eventId,
        origRequestId: "chain-1",
        tenantId: "acme",
      }),
    ]);
    expect(app.deliveries).toEqual([
      expect.objectContaining({
        channel: "log",
        message: { text: "the file was scanned", file: id },
        tenantId: "acme",
      }),
    ]);
    const lines = app.logs.filter(
      ({ handler }) =>
        typeof handler === "string" && /enqueue-scan|file\.scan|delivery/.test(handler),
    );
    expect(lines.length).toBeGreaterThan(5);
    expect(
      lines.every(
        ({ origRequestId, requestId }) => origRequestId === "chain-1" && requestId === "chain-1",
      ),
    ).toBe(true);
  });
});
