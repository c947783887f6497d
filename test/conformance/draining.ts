import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { signalGroup, startProcess } from "../support/process.ts";
import type { Row } from "./row.ts";

/** Section 4.3, and the beginning of section 3.1: a real process gets a real SIGTERM. */
export const drainingRows: readonly Row[] = [
  {
    section: "3.1",
    sentence: "running | SIGTERM | none | draining | `/health/ready` starts answering 503",
    prove: notReadyOnceDraining,
  },
  {
    section: "4.3",
    sentence: "Returns 503 once the service is draining.",
    prove: notReadyOnceDraining,
  },
];

async function notReadyOnceDraining(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "keelson-conformance-"));
  const fixture = join(import.meta.dirname, "../fixtures/container.ts");
  const env = {
    PORT: "0",
    NODE_ENV: "development",
    LOG_FORMAT: "json",
    KEELSON_DIRECTORY: directory,
    AWS_ENDPOINT_URL: undefined,
    SHUTDOWN: JSON.stringify({ lingerMs: 60_000, totalMs: 120_000 }), // it is killed before
  };
  const container = await startProcess(process.execPath, [fixture], env);
  try {
    const status = async (path: string) =>
      (await fetch(`http://127.0.0.1:${container.port}${path}`)).status;
    expect(await status("/health/ready")).toBe(200);
    container.child.kill("SIGTERM");

    await expect
      .poll(() => container.logs)
      .toContainEqual(expect.objectContaining({ msg: "shutdown.started" }));
    expect(await status("/health/ready")).toBe(503);
    expect(await status("/health/live")).toBe(200);
  } finally {
    signalGroup(container, "SIGKILL");
    await container.exited;
    rmSync(directory, { recursive: true, force: true, maxRetries: 20 });
  }
}
