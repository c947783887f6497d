// A rolling deployment: processes of an earlier version and of this one, on the same tables and queues.
import { describe, expect, test } from "vitest";
import { lines } from "./lines.ts";
import { checking, meetLive } from "./session.ts";
import { useSession } from "./use-session.ts";
import { currentVersion, versionPairs } from "./version.ts";

const current = await currentVersion();
const session = useSession(current);

describe.each(await versionPairs(current))("%s:", (pair, first, second) => {
  const met = lines.filter(
    ({ without = [] }) => ![first.name, second.name].some((name) => without.includes(name)),
  );

  test.each(met.map((line) => [line.name, line] as const))("%s", async (name, line) => {
    const parties = [
      session().party(first, name, pair),
      checking(session().party(second, name, pair), expect),
    ] as const;
    await meetLive(line, session(), parties);
  });
});
