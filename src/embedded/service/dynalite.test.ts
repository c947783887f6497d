import { createRequire } from "node:module";
import { expect, test } from "vitest";
import { openDynalite } from "./dynalite.ts";

const load = createRequire(import.meta.url);

test("when dynalite is missing, names the command that installs it", async () => {
  const absent = (id: string) => {
    throw Object.assign(new Error(`Cannot find module '${id}'`), { code: "MODULE_NOT_FOUND" });
  };
  await expect(openDynalite(undefined, absent)).rejects.toThrow("npm i -D dynalite");
});

test("refuses a dynalite that stores items differently", async () => {
  const changed = (id: string) => {
    const module = load(id);
    if (id !== "dynalite/db") return module;
    return {
      ...module,
      create: (options: object) => {
        const store = module.create(options);
        return { ...store, getItemDb: (table: string) => store.getItemDb(`v5-${table}`) };
      },
    };
  };
  await expect(openDynalite(undefined, changed)).rejects.toThrow("npm i -D dynalite@4.0");
});

test("abandoning fails the running operation and no later one", async () => {
  const stuck = (id: string) => (id === "dynalite/actions/listTables" ? () => {} : load(id));
  const dynalite = await openDynalite(undefined, stuck);
  const run = dynalite.run("ListTables", dynalite.prepare("ListTables", {}));
  dynalite.abandon(new Error("thrown in a callback"));
  await expect(run).rejects.toThrow("thrown in a callback");
  dynalite.abandon(new Error("nothing runs any more"));
  await expect(dynalite.table("none")).rejects.toMatchObject({
    type: expect.stringContaining("ResourceNotFoundException"),
  });
});

test("passes on an action's error unchanged", async () => {
  const fault = new Error("corrupt");
  const failing = (id: string) =>
    id === "dynalite/actions/listTables"
      ? (_store: object, _input: object, done: (error: Error) => void) => done(fault)
      : load(id);
  const dynalite = await openDynalite(undefined, failing);
  await expect(dynalite.run("ListTables", {})).rejects.toBe(fault);
});

test("passes on an error of the store", async () => {
  const dynalite = await openDynalite();
  await dynalite.store.db.close();
  await expect(dynalite.table("any")).rejects.toThrow("closed");
  await expect(dynalite.itemAt("any", "place")).rejects.toThrow("closed");
});
