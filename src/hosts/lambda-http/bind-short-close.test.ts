import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { waitFor } from "../../../test/support/wait-for.ts";
import { buildServer } from "../../app/server/server.ts";
import { lambdaQueue, lambdaSweep } from "../lambda/workers.ts";
import { lambdaHttp } from "./http-handler.ts";

let lines: Record<string, unknown>[];
let before: NodeJS.SignalsListener[];
let exit: ReturnType<typeof vi.spyOn>;

beforeEach(() => {
  lines = [];
  before = process.listeners("SIGTERM") as NodeJS.SignalsListener[];
  vi.spyOn(process.stdout, "write").mockImplementation(
    (line) => lines.push(JSON.parse(String(line))) > 0,
  );
  exit = vi.spyOn(process, "exit").mockImplementation((() => undefined) as never);
  vi.stubEnv("AWS_LAMBDA_FUNCTION_NAME", "fn");
  vi.stubEnv("KEELSON_AUTH_SECRET", "");
});
afterEach(() => {
  for (const listener of added()) process.off("SIGTERM", listener);
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

const added = () =>
  (process.listeners("SIGTERM") as NodeJS.SignalsListener[]).filter(
    (listener) => !before.includes(listener),
  );
const terminate = () => added()[0]?.("SIGTERM");

describe("SIGTERM in Lambda", () => {
  test("is handled by one listener for all functions and servers, and by none outside Lambda", () => {
    vi.stubEnv("AWS_LAMBDA_FUNCTION_NAME", undefined);
    lambdaHttp(buildServer({ features: [] }));
    expect(added()).toHaveLength(0);
    vi.stubEnv("AWS_LAMBDA_FUNCTION_NAME", "fn");
    const server = buildServer({ features: [] });
    for (const make of [lambdaHttp, lambdaQueue, lambdaSweep]) make(server);
    lambdaHttp(buildServer({ features: [] }));
    expect(added()).toHaveLength(1);
  });

  test("closes each server's resources once, in reverse order, despite failures, and exits with 0", async () => {
    const closed: string[] = [];
    const server = buildServer({ features: [] });
    server.onClose("first", () => void closed.push("first"));
    server.onClose("failing", () => Promise.reject(new Error("it would not close")));
    server.onClose("last", () => void closed.push("last"));
    lambdaHttp(server);
    terminate();
    terminate();
    await waitFor(() => expect(exit).toHaveBeenCalledWith(0));
    expect(exit).toHaveBeenCalledTimes(1);
    expect(closed).toEqual(["last", "first"]);
    expect(lines).toMatchObject([
      { msg: "shutdown.close_failed", resource: "failing" },
      {
        level: "info",
        msg: "shutdown.completed",
        clean: false,
        exitCode: 0,
        totalMs: expect.any(Number),
      },
    ]);
  });

  test("is measured when the server has metrics", async () => {
    const [clean, failing] = [
      buildServer({ features: [], metrics: {} }),
      buildServer({ features: [], metrics: {} }),
    ];
    failing.onClose("failing", () => Promise.reject(new Error("it would not close")));
    for (const server of [clean, failing]) lambdaHttp(server);
    terminate();
    await waitFor(() => expect(exit).toHaveBeenCalledWith(0));
    expect(lines.filter((line) => "keelson.drains" in line)).toMatchObject([
      { "keelson.drains": 1, "keelson.outcome": "clean", service: "keelson" },
      { "keelson.drains": 1, "keelson.outcome": "lossy", service: "keelson" },
    ]);
  });

  test("ends the process even when a server cannot be bound", async () => {
    vi.stubEnv("KEELSON_AUTH_SECRET", "too short");
    lambdaHttp(buildServer({ features: [] }));
    terminate();
    await waitFor(() => expect(exit).toHaveBeenCalledWith(0));
    expect(lines).toEqual([]);
  });
});
