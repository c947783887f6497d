import { type RaceApp, type RaceScenario, raceEverywhere } from "keelson/testing";
import { afterAll, expect, test } from "vitest";
import { server } from "../../examples/files/server.ts";

/**
 * Orders of each race, random ones where its search has fewer. `KEELSON_RACE_ORDERS` sets another
 * number: a longer search takes more preemptions as well.
 */
const orders = Number(process.env["KEELSON_RACE_ORDERS"] ?? 1_450);

export type Race = Pick<
  RaceScenario<RaceApp, unknown>,
  "requests" | "arrange" | "check" | "crashes" | "lostAnswers" | "throttles" | "expiries"
>;

let ran = 0;
const began = performance.now();
afterAll(() => {
  const seconds = (performance.now() - began) / 1_000;
  console.info(`${ran} orders without a race, ${(ran / seconds).toFixed(0)} per second`);
});

export function race(name: string, scenario: Race, of = server): void {
  test(`${name} has no race`, async () => {
    const preemptions = orders > 2_000 ? 3 : 2;
    const options = { ...scenario, processes: 2, preemptions };
    const found = await raceEverywhere(of, { ...options, orders });
    const walks = orders - found.orders;
    await raceEverywhere(of, { ...options, orders: 0, walks });
    ran += found.orders + walks;
    expect(found.orders).toBeGreaterThan(1);
  });
}

interface FileItem {
  readonly id: string;
  readonly name: string;
}

export const as = (app: RaceApp) => app.as(["admin", "systemAdmin"]);

export const create =
  (key: string, name = "a.txt") =>
  (app: RaceApp) =>
    app.fetch("/files", {
      ...{ body: { name, sizeMb: 1 }, as: as(app) },
      headers: { "idempotency-key": key },
    });

export const filesOf = async (app: RaceApp): Promise<readonly FileItem[]> => {
  const response = await app.fetch("/files", { as: as(app) });
  return ((await response.json()) as { items: FileItem[] }).items;
};
