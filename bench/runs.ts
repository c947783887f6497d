import { fork } from "node:child_process";
import { once } from "node:events";
import { openSync } from "node:fs";
import type { Result } from "./measure.ts";

/** Runs a file of this folder as a production process whose stdout is /dev/null, and gives what it sends. */
export async function resultsOf(
  file: string,
  env: Readonly<Record<string, string>>,
): Promise<Result[]> {
  const child = fork(new URL(file, import.meta.url), {
    env: { ...process.env, ...env, NODE_ENV: "production" },
    stdio: ["ignore", openSync("/dev/null", "w"), "inherit", "ipc"],
  });
  const [answer] = await Promise.race([
    once(child, "message"),
    once(child, "exit").then(([code]) =>
      Promise.reject(new Error(`${file} exited with ${code} before it was done`)),
    ),
  ]);
  // Safe: each of these files sends its results, and nothing else.
  return answer as Result[];
}
