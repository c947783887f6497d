import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { crashEverywhere } from "keelson/testing";
import { expect, test } from "vitest";
import { defineFeature } from "../../src/app/features/feature.ts";
import type { FeatureBuilder } from "../../src/app/features/feature-builder.ts";
import { consumeOnce } from "../../src/app/run/task.ts";
import type { ScheduleOptions } from "../../src/app/schedules/schedule.ts";
import type { Schedule } from "../../src/app/schedules/schedule-look.ts";
import { createSchedules } from "../../src/app/schedules/schedules.ts";
import { buildServer, type Server } from "../../src/app/server/server.ts";
import { type CallWatch, createCallWatch } from "../../src/tools/testing/app/faults.ts";
import { createTestClock } from "../../src/tools/testing/app/test-clock.ts";
import {
  startTestProcess,
  type TestProcess,
  untilCrash,
} from "../../src/tools/testing/app/test-process.ts";
import { startTestStack, type TestStack } from "../../src/tools/testing/app/test-stack.ts";
import { runs as triesOf } from "../support/runs.ts";

const hour = 3_600_000;
const day = 24 * hour;
/** How often it fires. */
const fires = Math.max(250, triesOf(1_000));

interface Table {
  readonly name: string;
}

/** Counts each time in a table, with the commit, by the schedule's name. */
const counting =
  (table: Table, name: string): ScheduleOptions["handler"] =>
  (ctx, { at }) => {
    const Key = { pk: `${name} ${at.toISOString()}` };
    const expression = {
      UpdateExpression: "ADD amount :one",
      ExpressionAttributeValues: { ":one": 1 },
    };
    return ctx.commit([{ Update: { TableName: table.name, Key, ...expression } }], undefined);
  };

function serverOf(declare: (r: FeatureBuilder, table: Table) => void): Server {
  const feature = defineFeature("reports", (r) => {
    const table = r.table("fires", { partitionKey: "pk", tenant: false });
    declare(r as FeatureBuilder, table);
  });
  return buildServer({ features: [feature] });
}

test("wherever a process crashes, its commits take effect once, and due schedules fire", async () => {
  // Half a day from now: no cut run goes on until it is due once more.
  const cron = `0 ${(new Date().getUTCHours() + 12) % 24} * * *`;
  const server = serverOf((r, table) =>
    r.schedule("report.make", { cron, handler: counting(table, "make") }),
  );
  const cuts = await crashEverywhere(server, {
    arrange: async (app) => {
      await app.settled();
      app.clock.advance(day);
    },
    act: (app) => app.settled(),
    check: async (app) => {
      const { db } = await app.ctx({ id: "ann", tenantId: "acme" });
      const { Items = [] } = await db.send(
        new ScanCommand({ TableName: firesTable(app.env), ConsistentRead: true }),
      );
      expect(Items).toMatchObject([{ amount: 1 }]);
    },
  });
  expect(cuts.map(({ moment, operation }) => `${moment} ${operation}`)).toEqual(
    expect.arrayContaining([
      "after GetItem",
      "after PutItem",
      "after UpdateItem",
      "after TransactWriteItems",
    ]),
  );
});

/** What the table is called: in an emulator of AWS each stack has some of its own. */
function firesTable(env: Readonly<Record<string, string>>): string {
  return env["KEELSON_TABLE_FIRES"] ?? "keelson-fires";
}

/** A number from 0 to 1 like any other, the same in each run of the test. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

type Start = (watch: CallWatch["watch"]) => Promise<TestProcess>;

/** One of the processes of a fleet; after a crash another one is in its place. */
class Member {
  crashes = 0;
  readonly #start: Start;
  readonly #now: () => number;
  #faults: CallWatch["faults"] | undefined;
  #process: TestProcess | undefined;
  #schedules: readonly Schedule[] = [];
  /** When each is looked at again. */
  readonly #nextMs = new Map<string, number>();

  constructor(start: Start, now: () => number) {
    this.#start = start;
    this.#now = now;
  }

  /** Looks at what it would look at by now, as a container does; `cut` names a call after which it dies. */
  async look(cut?: string): Promise<void> {
    const process = await this.#running();
    if (cut !== undefined) this.#faults?.after(cut, 1).crash();
    const looks = this.#schedules.map(async (schedule) => {
      if ((this.#nextMs.get(schedule.name) ?? 0) > this.#now()) return;
      const { nextMs } = await schedule.look();
      this.#nextMs.set(schedule.name, nextMs);
    });
    await untilCrash(process, Promise.all(looks)).catch(() => undefined);
  }

  hasCrashed(): boolean {
    return this.#process?.signal.aborted === true;
  }

  async close(): Promise<void> {
    if (!this.hasCrashed()) await this.#process?.close();
  }

  async #running(): Promise<TestProcess> {
    if (this.#process !== undefined && !this.hasCrashed()) return this.#process;
    const { faults, watch } = createCallWatch(() => {
      this.crashes += 1;
      this.#process?.crash();
    });
    this.#process = await this.#start(watch);
    this.#faults = faults;
    this.#nextMs.clear();
    const { runtime, adapters } = this.#process;
    this.#schedules = await createSchedules(runtime, adapters, consumeOnce);
    return this.#process;
  }
}

/** Five processes on one stack, whose clocks are apart by two seconds. */
async function startFleet(server: Server) {
  const stack: TestStack = await startTestStack(server);
  const { clock, timers } = createTestClock();
  const recorded = { events: [], jobs: [], deliveries: [] };
  const secret = "a secret that is long enough for these tests";
  const members = [-1_000, -500, 0, 500, 1_000].map((aheadMs) => {
    const own = { now: () => clock.now() + aheadMs };
    const options = {
      variables: stack.env,
      clock: own,
      timers,
      auth: { secret },
      logs: [],
      recorded,
      environment: "test" as const,
    };
    return new Member((watch) => startTestProcess(server, { ...options, watch }), own.now);
  });
  return {
    clock,
    members,
    /** Moves the clocks to `atMs`; they go on meanwhile. */
    moveTo: (atMs: number) => clock.advance(Math.max(0, Math.round(atMs - clock.now()))),
    lookAll: () => Promise.all(members.map((member) => member.look())),
    /** How often any of them has died. */
    crashes: () => members.reduce((sum, member) => sum + member.crashes, 0),
    /** How often each time was committed. */
    amounts: async (): Promise<Record<string, unknown>> => {
      const reader = await startTestProcess(server, {
        ...{
          variables: stack.env,
          clock,
          timers,
          auth: { secret },
          logs: [],
          recorded,
          environment: "test",
          watch: () => undefined,
        },
      });
      const items: Record<string, unknown> = {};
      let from: Record<string, unknown> | undefined;
      do {
        const page = await reader.adapters.database.send(
          new ScanCommand({
            TableName: firesTable(stack.env),
            ConsistentRead: true,
            ExclusiveStartKey: from,
          }),
        );
        for (const { pk, amount } of page.Items ?? []) items[String(pk)] = amount;
        from = page.LastEvaluatedKey;
      } while (from !== undefined);
      await reader.close();
      return items;
    },
    close: async () => {
      await Promise.all(members.map((member) => member.close()));
      await stack.close();
    },
  };
}

test(`five processes with different clocks fire a schedule ${fires} times, each time once, even though some crash`, async () => {
  const runs = new Map<string, number>();
  const server = serverOf((r, table) => {
    const count = counting(table, "make");
    r.schedule("report.make", {
      ...{ cron: "0 * * * *", timeZone: "Europe/Paris" },
      handler: (ctx, fire) => {
        runs.set(fire.at.toISOString(), (runs.get(fire.at.toISOString()) ?? 0) + 1);
        return count(ctx, fire);
      },
    });
  });
  const fleet = await startFleet(server);
  try {
    const random = createRandom(1);
    const startMs = Math.ceil((fleet.clock.now() + day) / hour) * hour;
    const times = Array.from({ length: fires }, (_, index) => startMs + index * hour);
    fleet.moveTo(startMs - 60_000);
    await fleet.lookAll();
    let disturbed = 0;
    for (const atMs of times) {
      const crashes = fleet.crashes();
      // Some clocks are there already, others are not.
      fleet.moveTo(atMs - 1_000 + random() * 2_000);
      const victim = random() < 0.2 ? Math.floor(random() * 5) : -1;
      const cut = ["GetItem", "PutItem", "UpdateItem", "TransactWriteItems"][
        Math.floor(random() * 4)
      ] as string;
      await Promise.all(
        fleet.members.map((member, index) => member.look(index === victim ? cut : undefined)),
      );
      fleet.moveTo(atMs + 1_500);
      await fleet.lookAll();
      if (fleet.crashes() === crashes) {
        expect(runs.get(new Date(atMs).toISOString())).toBe(1);
        continue;
      }
      disturbed += 1;
      // The dead process's lease has to be over; a call at which another was to die may come only now.
      for (let waitedMs = 40_000, known = -1; known !== fleet.crashes(); waitedMs += 40_000) {
        known = fleet.crashes();
        fleet.moveTo(atMs + waitedMs);
        await fleet.lookAll();
      }
    }
    expect(await fleet.amounts()).toEqual(
      Object.fromEntries(times.map((atMs) => [`make ${new Date(atMs).toISOString()}`, 1])),
    );
    expect(disturbed).toBeGreaterThan(fires / 100);
  } finally {
    await fleet.close();
  }
});

/** A time of each night, and when it comes in the three nights around a change of the clocks, in UTC. */
const nights = [
  ["Europe/Paris", "30 2", ["2036-03-29T01:30", "2036-03-30T01:00", "2036-03-31T00:30"]],
  ["Europe/Paris", "30 2", ["2036-10-25T00:30", "2036-10-26T00:30", "2036-10-27T01:30"]],
  ["America/New_York", "30 2", ["2036-03-08T07:30", "2036-03-09T07:00", "2036-03-10T06:30"]],
  ["America/New_York", "30 1", ["2036-11-01T05:30", "2036-11-02T05:30", "2036-11-03T06:30"]],
  ["Australia/Sydney", "30 2", ["2036-04-04T15:30", "2036-04-05T15:30", "2036-04-06T16:30"]],
  ["Australia/Sydney", "30 2", ["2036-10-03T16:30", "2036-10-04T16:00", "2036-10-05T15:30"]],
] as const;

test("five processes fire a nightly schedule once a night in three zones, at both changes of daylight saving", async () => {
  const server = serverOf((r, table) => {
    for (const [index, [timeZone, time]] of nights.entries()) {
      r.schedule(`report.night-${index}`, {
        cron: `${time} * * *`,
        timeZone,
        handler: counting(table, String(index)),
      });
    }
  });
  const fleet = await startFleet(server);
  try {
    const begins = nights
      .map(([, , [first]]) => Date.parse(`${first}Z`) - hour)
      .sort((one, other) => one - other);
    fleet.moveTo(Number(begins[0]) - day);
    await fleet.lookAll();
    // What was missed since the last change fires first, once, and long before the times that count.
    for (const beginMs of begins) {
      for (let atMs = beginMs; atMs < beginMs + 2.5 * day; atMs += hour / 2) {
        if (atMs < fleet.clock.now()) continue;
        fleet.moveTo(atMs);
        await fleet.lookAll();
      }
    }
    const amounts = await fleet.amounts();
    for (const [index, [, , times]] of nights.entries()) {
      const [first, last] = [times[0], times[2]];
      const found = Object.entries(amounts)
        .map(([key, amount]) => [key.split(" "), amount] as const)
        .filter(
          ([[of, at = ""]]) =>
            of === String(index) && at.slice(0, 16) >= first && at.slice(0, 16) <= last,
        )
        .map(([[, at = ""], amount]) => [at.slice(0, 16), amount]);
      expect(found.sort()).toEqual(times.map((time) => [time, 1]));
    }
  } finally {
    await fleet.close();
  }
});
