// Processes of one server that do different work: KEELSON_RUN.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { type StartedProcess, signalGroup, startProcess } from "../support/process.ts";

const fixture = join(import.meta.dirname, "../fixtures/works.ts");
const directory = mkdtempSync(join(tmpdir(), "keelson-works-"));
const processes: StartedProcess[] = [];
afterAll(async () => {
  for (const one of processes) {
    signalGroup(one, "SIGKILL");
    await one.exited;
  }
  rmSync(directory, { recursive: true, force: true, maxRetries: 20 });
});

async function start(KEELSON_RUN: string): Promise<StartedProcess> {
  const started = await startProcess(process.execPath, [fixture], {
    PORT: "0",
    NODE_ENV: "development",
    LOG_FORMAT: "json",
    KEELSON_DIRECTORY: directory,
    AWS_ENDPOINT_URL: undefined,
    KEELSON_RUN,
  });
  processes.push(started);
  return started;
}

const said = ({ logs }: StartedProcess, msg: string) => logs.filter((line) => line["msg"] === msg);

test("a process that only serves sends what its requests commit, and another works on it", async () => {
  const web = await start("http");
  const worker = await start("workers, schedules");
  const add = (to: StartedProcess) =>
    fetch(`http://127.0.0.1:${to.port}/items`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ text: "milk" }),
    });

  expect((await add(worker)).status).toBe(404);
  expect((await fetch(`http://127.0.0.1:${worker.port}/health/ready`)).status).toBe(200);
  expect((await add(web)).status).toBe(204);
  await expect.poll(() => said(worker, "item.printed")).toMatchObject([{ text: "milk" }]);
  expect(said(web, "item.printed")).toEqual([]);

  await expect.poll(() => said(worker, "item.ticked").length).toBeGreaterThan(0);
  expect(said(web, "item.ticked")).toEqual([]);
});
