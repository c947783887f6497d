import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { type RecordedOptions, recordedRun } from "../../../test/support/recorded-run.ts";
import type { RunParts } from "../../parts/once/claimed-run.ts";
import { derivedId } from "../../parts/once/derived-id.ts";
import type { EffectOptions } from "../handlers/effect-options.ts";
import { EffectLedger } from "./effect-ledger.ts";
import type { EffectRun, HeldEffect } from "./effect-run.ts";
import { publish } from "./publish.ts";

const payload = z.object({ n: z.number() });
const ofRequest = { causedBy: "r1", origRequestId: "r1", tenantId: "acme", userId: "ann" };
const ofMessage = { ...ofRequest, causedBy: "m1" };

function publishing(options: RecordedOptions = {}, cause: EffectRun["cause"] = ofRequest) {
  const kept: unknown[][] = [];
  const keep = async (...given: unknown[]) => {
    kept.push(given);
    return { Kept: kept.length };
  };
  const store = { value: { keep } };
  const { did, parts } = recordedRun({
    events: { "note.written": { schema: payload }, "note.kept": { keptDays: 3 } },
    adapters: { keptEvents: store },
    ...options,
  });
  const ledger = new EffectLedger<HeldEffect>(false);
  const run: EffectRun = { ...parts, cause, ledger };
  const ids = () => did.filter(([what]) => what === "named").map(([, id]) => id);
  return { did, run, ledger, kept, keep, ids };
}

const written = derivedId("seed", "event", "note.written", 0);

describe("ctx.publish", () => {
  test("holds the event for the commit, with its cause, proof and trace in its row", async () => {
    const { run, ledger } = publishing();
    await publish(run, "handler", "note.written", { n: 1 }, undefined);

    const [effect, ...others] = ledger.seal();
    expect(others).toEqual([]);
    expect(effect).toMatchObject({ kind: "event", name: "note.written", kept: undefined });
    expect(effect?.row).toMatchObject({
      eventId: written,
      type: "note.written",
      tenantId: "acme",
    });
    expect(JSON.parse(effect?.row.text ?? "")).toEqual({
      kind: "shared",
      type: "note.written",
      eventId: written,
      payload: { n: 1, requestId: "r1" },
      ...ofRequest,
      group: "acme",
      proof: { key: "k1", mac: "mac" },
      trace: { traceparent: "00-trace" },
    });
  });

  test("names the event on the span of the call", async () => {
    const { run, ids } = publishing();
    await publish(run, "handler", "note.written", { n: 1 }, undefined);
    expect(ids()).toEqual([written]);
  });

  test("sends the payload as it was given, not as its schema returns it", async () => {
    const schema = z.object({ n: z.number().transform(String) });
    const { run, ledger } = publishing({ events: { "note.written": { schema } } });
    await publish(run, "handler", "note.written", { n: 1, at: new Date(0) }, undefined);
    expect(JSON.parse(ledger.seal()[0]?.row.text ?? "").payload).toEqual({
      n: 1,
      at: "1970-01-01T00:00:00.000Z",
      requestId: "r1",
    });
  });

  test("gives each event of a type its own ID, and a repeat of the run the same ones", async () => {
    const [first, second] = [publishing(), publishing()];
    for (const { run } of [first, second]) {
      await publish(run, "handler", "note.written", { n: 1 }, undefined);
      await publish(run, "handler", "note.written", { n: 1 }, undefined);
    }
    expect(first.ids()).toEqual([written, derivedId("seed", "event", "note.written", 1)]);
    expect(second.ids()).toEqual(first.ids());
  });

  test.each([
    [
      "an undeclared event",
      "note.lost",
      {},
      "no feature of this server declares the event note.lost; declare it with r.event",
    ],
    [
      "a payload that does not fit",
      "note.written",
      { n: "1" },
      /^ctx.publish: the payload of note.written does not fit its schema \(n: /,
    ],
    [
      "a payload that is no object",
      "note.kept",
      7,
      "ctx.publish: the payload of note.kept is not an object",
    ],
    ["keelson's own member", "note.kept", { requestId: "mine" }, 'has a "requestId"'],
  ])("refuses %s and holds nothing", async (_, type, given, message) => {
    const { run, ledger, kept } = publishing();
    await expect(publish(run, "handler", type, given, undefined)).rejects.toThrow(message);
    expect([ledger.size, kept]).toEqual([0, []]);
  });

  test("is refused once the run commits, except in its hooks", async () => {
    const { run, ledger } = publishing();
    ledger.begin("handler");
    ledger.join();
    await expect(publish(run, "handler", "note.written", { n: 1 }, undefined)).rejects.toThrow(
      "ctx.publish: the run is committing; publish before ctx.commit",
    );
    await publish(run, "hook", "note.written", { n: 2 }, undefined);
    expect(ledger.seal()).toHaveLength(1);
  });

  test("belongs to the attempt in which it was called, even if it ends in the next one", async () => {
    const { run, ledger } = publishing();
    const late = publish(run, "handler", "note.written", { n: 1 }, undefined);
    ledger.failed();
    await late;
    expect(ledger.size).toBe(0);
  });
});

describe("an event with `afterCommit: false`", () => {
  const atOnce = { afterCommit: false };
  const idAtOnce = derivedId("seed", "event at once", "note.written", 0);

  function storing(refused?: readonly object[]) {
    const commit = vi.fn(async (_given: { readonly token: string }) => refused);
    const kept = { Kept: 1 };
    const keptEvents = { value: { keep: async () => kept } };
    return { ...publishing({ adapters: { claims: { commit }, keptEvents } }), commit, kept };
  }

  test("is stored in a transaction of its own, then logged and sent to the bus", async () => {
    const { commit, did, run, ledger } = storing();
    await publish(run, "handler", "note.written", { n: 1 }, atOnce);

    const token = expect.any(String);
    const items = [{ Put: idAtOnce }];
    // The tenant's own credentials, if AWS isolates tenants.
    expect(commit.mock.calls).toEqual([[{ items, token, completed: undefined, tenantId: "acme" }]]);
    expect(did).toEqual([
      ["named", idAtOnce],
      ["log.info", "event.published", { event: "note.written", publishedId: idAtOnce }],
      ["dispatch", [expect.objectContaining({ eventId: idAtOnce, type: "note.written" })]],
    ]);
    expect(ledger.size).toBe(0);
  });

  test("still happens after the commit, and leaves the IDs of events that join it as they are", async () => {
    const { commit, run, ledger } = storing();
    await publish(run, "handler", "note.written", { n: 1 }, atOnce);
    await publish(run, "handler", "note.written", { n: 1 }, undefined);
    expect(ledger.seal().map(({ row }) => row.eventId)).toEqual([written]);
    ledger.written();
    await publish(run, "handler", "note.written", { n: 1 }, atOnce);
    expect(commit).toHaveBeenCalledTimes(2);
    expect(new Set(commit.mock.calls.map(([{ token }]) => token)).size).toBe(2);
  });

  test("is stored with its kept event", async () => {
    const { commit, ids, kept, run } = storing();
    await publish(run, "handler", "note.kept", {}, atOnce);
    expect(commit.mock.calls).toMatchObject([[{ items: [{ Put: ids()[0] }, kept] }]]);
  });

  test("fails if its rows are refused, and is neither logged nor sent", async () => {
    const { did, run } = storing([{ code: "ThrottlingError", message: "slow down" }]);
    const refused = publish(run, "handler", "note.written", { n: 1 }, atOnce);
    await expect(refused).rejects.toThrow(
      "event note.written could not be stored: ThrottlingError slow down",
    );
    expect(did).toEqual([["named", idAtOnce]]);
  });

  test.each([
    ["note.lost", {}, "no feature of this server declares the event note.lost"],
    ["note.written", { n: "1" }, "does not fit its schema"],
  ])("is refused like any other: %s with %j", async (type, given, message) => {
    const { commit, run } = storing();
    await expect(publish(run, "handler", type, given, atOnce)).rejects.toThrow(message);
    expect(commit).not.toHaveBeenCalled();
  });
});

test.each<[unknown, string]>([
  [{ afterCommit: "no" }, 'afterCommit is "no"; use true or false'],
  [{ afterCommit: 1 }, "afterCommit is 1; use true or false"],
  [{ afterCommit: null }, "afterCommit is null; use true or false"],
  [{ key: "k" }, 'unknown option "key"; known are afterCommit'],
  [{ aftercommit: true }, 'unknown option "aftercommit"; did you mean `afterCommit`?'],
  [7, "the options are 7; pass an object with afterCommit"],
])("the options %j are refused, and nothing is held", async (options, problem) => {
  const { run, ledger, ids } = publishing();
  // Safe cast: plain JavaScript may pass anything.
  const refused = publish(run, "handler", "note.written", { n: 1 }, options as EffectOptions);
  await expect(refused).rejects.toThrow(
    expect.objectContaining({
      name: "TypeError",
      message: expect.stringContaining(`ctx.publish: ${problem}`),
    }),
  );
  expect([ledger.size, ids()]).toEqual([0, []]);
});

describe("a kept event", () => {
  test("is stored with its content, its days and its trace, next to its row", async () => {
    const { run, ledger, kept } = publishing();
    await publish(run, "handler", "note.kept", { n: 1 }, undefined);

    const [effect] = ledger.seal();
    expect(effect?.kept).toEqual({ Kept: 1 });
    const event = { type: "note.kept", eventId: effect?.row.eventId, payload: { n: 1 } };
    expect(kept).toEqual([
      [{ kind: "shared", ...event, ...ofRequest }, 3, { traceparent: "00-trace" }],
    ]);
  });

  test("opens its store unless it is open already", async () => {
    let opened = 0;
    const { run, ledger, keep } = publishing();
    const open = async () => {
      opened += 1;
      return { keep };
    };
    const { run: closed } = publishing({ adapters: { keptEvents: { value: undefined, open } } });
    await publish({ ...run, adapters: closed.adapters }, "handler", "note.kept", {}, undefined);
    expect(opened).toBe(1);
    expect(ledger.seal()[0]?.kept).toEqual({ Kept: 1 });
    await publish(publishing().run, "handler", "note.kept", {}, undefined); // `value` needs no `open`
  });

  test("of a request gets an ID that a reuse of its idempotency key does not repeat", async () => {
    const { run, ids } = publishing();
    await publish(run, "handler", "note.kept", {}, undefined);
    await publish(run, "handler", "note.kept", {}, undefined);
    expect(new Set([...ids(), derivedId("seed", "event", "note.kept", 0)]).size).toBe(3);
    for (const id of ids()) expect(id).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-/); // random
  });

  test("of a message gets the same ID when the message is received again", async () => {
    const { run, ids } = publishing({}, ofMessage);
    await publish(run, "handler", "note.kept", {}, undefined);
    expect(ids()).toEqual([derivedId("seed", "event", "note.kept", 0)]);
  });

  test.each([
    ["message", true],
    ["write", false],
  ])(
    "of a run that is its own cause, with the claim of a %s: derives its ID: %s",
    async (kind, isDerived) => {
      // Safe cast: only the kind of the claim is read.
      const held = () => ({ wanted: { kind } }) as ReturnType<RunParts["held"]>;
      const { run, ids } = publishing({ run: { held } });
      await publish(run, "handler", "note.kept", {}, undefined);
      expect(ids()[0] === derivedId("seed", "event", "note.kept", 0)).toBe(isDerived);
    },
  );
});
