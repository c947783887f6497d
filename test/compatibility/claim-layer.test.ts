// Functions of plain Powertools whose deployment puts ClaimLayer in the place of Powertools' own layer, and back.
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import type { ClaimLayerOptions } from "keelson/claim-layer";
import { describe, expect, test } from "vitest";
import { claimLayerLines } from "./claim-layer-lines.ts";
import type { Line } from "./line.ts";
import { checking, meetLive } from "./session.ts";
import { useSession } from "./use-session.ts";
import { currentVersion, keptVersion, keptVersions, type Version } from "./version.ts";

/** Powertools' own layer, where a version has ClaimLayer. */
class OwnLayer extends DynamoDBPersistenceLayer {
  constructor({ waitMs: _waitMs, ...options }: ClaimLayerOptions) {
    super(options as ConstructorParameters<typeof DynamoDBPersistenceLayer>[0]); // safe: all else is named as it names it
  }
}

const current = await currentVersion();
// Safe: of its `claimLayer` the lines use the layer, and that by the members of Powertools' base class.
const powertools = {
  ...current,
  name: "Powertools",
  claimLayer: { ClaimLayer: OwnLayer } as unknown as Version["claimLayer"],
};
const pairs: (readonly [string, Version, Version])[] = [
  ["Powertools' own layer, then this one", powertools, current],
  ["this one, then Powertools' own layer", current, powertools],
];
for (const name of keptVersions())
  pairs.push([`Powertools' own layer, then ${name}`, powertools, await keptVersion(name)]);

/** What Powertools' own layer has not: it keeps no more than an item holds, and without a Lambda context no lease. */
const lacking = ["a function that gave more than an item holds is answered"];
const lackingFirst = ["a function in progress whose lease is over is taken over"];

const session = useSession(current);

describe.each(pairs)("%s:", (pair, first, second) => {
  const isShared = ({ name }: Line) =>
    !lacking.includes(name) && !(first === powertools && lackingFirst.includes(name));

  for (const line of claimLayerLines.filter(isShared)) {
    test(line.name, async () => {
      const party = (version: Version) => session().party(version, line.name, pair);
      await meetLive(line, session(), [party(first), checking(party(second), expect)]);
    });
  }
});
