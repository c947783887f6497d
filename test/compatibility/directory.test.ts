// Data directories of earlier versions, whose process was killed in the middle of its last writes, opened by this one.
import { rmSync } from "node:fs";
import { developmentSecret, type EmbeddedStack, startEmbeddedStack } from "keelson/embedded";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { directoryLines, type KeptDirectory, writeKept } from "./directory.ts";
import { keptJson } from "./packed.ts";
import { beginSession, checking, type Session } from "./session.ts";
import { currentVersion, keptFile, keptVersions } from "./version.ts";

const current = await currentVersion();
const env = { NODE_ENV: "test" };

describe.each(keptVersions())("a data directory of %s:", (version) => {
  const kept = keptJson<KeptDirectory>(keptFile(version, "directory.json"));
  let directory: string;
  let stack: EmbeddedStack;
  let session: Session;
  beforeAll(async () => {
    directory = writeKept(kept);
    stack = await startEmbeddedStack({ directory, env });
    session = beginSession({
      ...stack.env,
      KEELSON_AUTH_SECRET: developmentSecret(directory, env),
    });
    const { once = [], outbox = [] } = await session.store.items("small");
    // A minute later: leases are over, and sweeps look at the rows.
    await session.store.age({ once, outbox }, 60_000 - (Date.now() - kept.leftMs));
    vi.spyOn(process.stdout, "write").mockReturnValue(true); // the hosts' logs
  });
  afterAll(async () => {
    vi.restoreAllMocks();
    session.close();
    await stack.close();
    rmSync(directory, { recursive: true, maxRetries: 20 });
  });

  test("its secret verifies the tokens that it signed", async () => {
    const { host } = session.party(current, "token", "directory");
    const answer = await host.send("/values", {
      headers: { authorization: `Bearer ${kept.token}` },
    });
    expect(answer.status).toBe(200);
    expect(
      (await host.send("/values", { headers: { authorization: `Bearer ${kept.token}x` } })).status,
    ).toBe(401);
  });

  test.each(kept.left.map((left) => [left.name, left] as const))("%s", async (name, { value }) => {
    const line = directoryLines.find((candidate) => candidate.name === name);
    if (line === undefined)
      throw new Error(`${version} was promised this, and no line says so any more`);
    await line.meet(checking(session.party(current, name, "directory"), expect), value);
  });
});
