import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { expect, test } from "vitest";
import { buildServer } from "../../src/index.ts";
import { startTestApp } from "../../src/tools/testing/index.ts";
import { type Look, reports, type Said, type Stand } from "../fixtures/scheduled.ts";
import { runs as triesOf } from "../support/runs.ts";

const fixture = join(import.meta.dirname, "../fixtures/scheduled.ts");
const hour = 3_600_000;
/** Number of fires. Of each 125, one stands still before its commit and one after. */
const fires = process.env["KEELSON_TEST_ENDPOINT"] ? 125 : Math.max(125, triesOf(1_000));

/** One of the processes of a fleet; when it is killed another one is started in its place. */
class Member {
  kills = 0;
  readonly #env: Readonly<Record<string, string>>;
  readonly #began: (firesAt: string) => void;
  #child: ChildProcess | undefined;
  #ready = Promise.resolve();

  constructor(env: Readonly<Record<string, string>>, began: (firesAt: string) => void) {
    this.#env = env;
    this.#began = began;
    this.start();
  }

  start(): void {
    const child = fork(fixture, {
      env: { ...process.env, ...this.#env },
      execArgv: [],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    child.on("message", (said: Said) => {
      if (said.kind === "began") this.#began(said.firesAt);
    });
    this.#ready = heard(child, "ready").then(() => {
      this.#child = child;
    });
  }

  ready(): Promise<void> {
    return this.#ready;
  }

  /** Resolves once it has looked, and at once while it starts. If its run stands still, it is killed. */
  async look(told: Look): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const end = heard(child, "looked", "stands");
    child.send(told);
    if ((await end) === "looked") return;
    await this.kill();
    this.kills += 1;
    this.start();
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined) return;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    expect(await exited).toEqual([null, "SIGKILL"]);
  }
}

/** Waits until a process says one of these. */
function heard(child: ChildProcess, ...kinds: readonly Said["kind"][]): Promise<Said["kind"]> {
  return new Promise((resolve, reject) => {
    const listen = (said: Said) => {
      if (said.kind === "failed") return end(() => reject(new Error(said.reason)));
      if (kinds.includes(said.kind)) end(() => resolve(said.kind));
    };
    const fail = (code: number | null) => end(() => reject(new Error(`it exited with ${code}`)));
    const end = (done: () => void) => {
      child.off("message", listen).off("exit", fail);
      done();
    };
    child.on("message", listen).on("exit", fail);
  });
}

test(`five operating system processes with different clocks fire ${fires} times, each time once, even though some are killed`, async () => {
  const app = await startTestApp(buildServer({ features: [reports] })); // makes the tables
  const runs = new Map<string, number>();
  const began = (firesAt: string) => void runs.set(firesAt, (runs.get(firesAt) ?? 0) + 1);
  const members = [-1_000, -500, 0, 500, 1_000].map(
    (aheadMs) => new Member({ ...app.env, AHEAD_MS: String(aheadMs) }, began),
  );
  const lookAll = (atMs: number, stand?: Stand) =>
    Promise.all(members.map((member) => member.look({ atMs, stand })));
  try {
    await Promise.all(members.map((member) => member.ready()));
    const startMs = Math.ceil((Date.now() + 24 * hour) / hour) * hour;
    const times = Array.from({ length: fires }, (_, index) => startMs + index * hour);
    await lookAll(startMs - 60_000);
    for (const [index, atMs] of times.entries()) {
      const stand =
        index % 125 === 10
          ? "before the commit"
          : index % 125 === 70
            ? "after the commit"
            : undefined;
      // Some clocks are there already, others are not.
      await lookAll(atMs - 900 + (index % 10) * 200, stand);
      await lookAll(atMs + 1_500, stand);
      if (stand !== undefined) await lookAll(atMs + 40_000); // the dead process's lease is over
    }
    await Promise.all(members.map((member) => member.ready()));
    const { db } = await app.ctx({ id: "ann", tenantId: "acme" });
    const { Items = [] } = await db.send(
      new ScanCommand({
        TableName: app.env["KEELSON_TABLE_FIRES"] ?? "keelson-fires",
        ConsistentRead: true,
      }),
    );
    const texts = times.map((atMs) => new Date(atMs).toISOString());
    expect(Object.fromEntries(Items.map(({ pk, amount }) => [pk, amount]))).toEqual(
      Object.fromEntries(texts.map((at) => [at, 1])),
    );
    // What was killed before its commit ran twice.
    expect(texts.filter((at) => runs.get(at) === 2)).toHaveLength(fires / 125);
    expect(texts.filter((at) => runs.get(at) === 1)).toHaveLength(fires - fires / 125);
    expect(members.reduce((kills, member) => kills + member.kills, 0)).toBe((fires / 125) * 2);
  } finally {
    await Promise.allSettled(members.map((member) => member.ready()));
    await Promise.all(members.map((member) => member.kill()));
    await app.close();
  }
});
