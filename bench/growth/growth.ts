import { configTable, onceTable, outboxTable } from "../../src/app/handlers/table.ts";
import { ensureTables } from "../../src/aws/tables/tables.ts";
import { countedDatabase } from "../../test/growth/counted-database.ts";
import { callCurves } from "./calls.ts";
import { computingCurves } from "./computing.ts";
import { type Growth, grown } from "./curve.ts";
import { newestCurves } from "./newest.ts";

/** Measures all curves, against the tables of an embedded stack. */
export async function growthCurves(env: Readonly<Record<string, string>>): Promise<Growth[]> {
  const store = countedDatabase(env["AWS_ENDPOINT_URL"] ?? "");
  const all: Growth[] = [];
  try {
    const tables = [
      { ...configTable, tableName: "growth-rows" },
      { ...onceTable, tableName: "growth-claims" },
      { ...outboxTable, tableName: "growth-outbox" },
    ];
    await ensureTables(store.database, tables, "create");
    for (const curve of [...computingCurves, ...callCurves(store), ...newestCurves(store)]) {
      const growth = await grown(curve);
      console.log(growth.id, growth.status, growth.slope, JSON.stringify(growth.figures));
      all.push(growth);
    }
  } finally {
    store.database.destroy();
  }
  return all;
}
