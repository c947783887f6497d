// own process: it replaces modules
import { afterEach, expect, test, vi } from "vitest";

const { loaded, complaint } = vi.hoisted(() => ({
  loaded: vi.fn(),
  complaint: vi.fn<() => string | undefined>(),
}));
vi.mock("./command-process.ts", () => {
  loaded();
  return {};
});
vi.mock("./node-version.ts", () => ({ nodeTooOld: complaint }));

afterEach(() => {
  vi.resetModules();
  vi.restoreAllMocks();
  process.exitCode = undefined;
});

test("an older Node gets one sentence and code 2, and nothing that it may not parse", async () => {
  const written = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  complaint.mockReturnValue("Node 18 is too old");
  await import("./main.ts");
  expect(written.mock.calls).toEqual([["keelson: Node 18 is too old\n"]]);
  expect([process.exitCode, loaded.mock.calls.length]).toEqual([2, 0]);
});

test("any other runs the command", async () => {
  complaint.mockReturnValue(undefined);
  await import("./main.ts");
  expect([process.exitCode, loaded.mock.calls.length]).toEqual([undefined, 1]);
});
