// What earlier versions have stored and sent, read by this one.
import { describe, expect, test } from "vitest";
import { lines } from "./lines.ts";
import { keptJson } from "./packed.ts";
import { checking, type Left } from "./session.ts";
import { useSession } from "./use-session.ts";
import { currentVersion, keptFile, keptVersions } from "./version.ts";

const current = await currentVersion();

describe.each(keptVersions())("data stored by %s:", (version) => {
  const session = useSession(current); // of its own: versions leave things under the same names
  const stored = keptJson<readonly (Left & { readonly name: string })[]>(
    keptFile(version, "stored.json"),
  );

  test.each(stored.map((left) => [left.name, left] as const))("%s", async (name, left) => {
    const line = lines.find((candidate) => candidate.name === name);
    if (line === undefined)
      throw new Error(`${version} was promised this, and no line says so any more`);
    await session().restore(line, left);
    await line.meet(checking(session().party(current, name, "kept"), expect), left.value);
  });
});
