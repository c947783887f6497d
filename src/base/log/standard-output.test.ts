import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterEach, describe, expect, it, vi } from "vitest";
import { writeAll, writeToStandardOutput } from "./log-record.ts";

const module = new URL("./server-logger.ts", import.meta.url).href;
const child = (script: string) =>
  spawn(
    process.execPath,
    ["--input-type=module", "-e", `import { createServerLogger } from "${module}";\n${script}`],
    {
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
const createLog =
  'const log = createServerLogger({ environment: "production", env: process.env });';

async function textOf(stream: NodeJS.ReadableStream): Promise<string> {
  let text = "";
  for await (const chunk of stream.setEncoding("utf8")) text += chunk;
  return text;
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe("stdout", () => {
  it("has every line when the process exits right after it, even with a slow reader", async () => {
    const process = child(`${createLog}
      for (let index = 0; index < 20_000; index += 1) log.info("line", { index, text: "ä".repeat(100) });
      globalThis.process.exit(0);`);
    const exited = once(process, "exit");
    // Nobody reads until the pipe, 64 KiB, has long been full.
    await once(process.stdout, "readable");
    const lines = (await textOf(process.stdout)).trimEnd().split("\n");
    expect(lines).toHaveLength(20_000);
    expect(lines.map((line) => JSON.parse(line).index)).toEqual(lines.map((_, index) => index));
    expect((await exited)[0]).toBe(0);
  });

  it("may break: the process continues, and writes nothing to stderr", async () => {
    const process = child(`${createLog}
      log.info("first");
      const timer = setInterval(() => {
        log.info("into the void", { text: "x".repeat(10_000) });
        globalThis.process.stderr.write(".");
      }, 1);
      globalThis.process.once("SIGTERM", () => { clearInterval(timer); globalThis.process.exitCode = 7; });`);
    const exited = once(process, "exit");
    await once(process.stdout, "data");
    process.stdout.destroy();
    let dots = 0;
    let other = "";
    for await (const chunk of process.stderr.setEncoding("utf8")) {
      dots += chunk.length;
      other += chunk.replaceAll(".", "");
      if (dots > 50 && !process.killed) process.kill("SIGTERM");
    }
    expect((await exited)[0]).toBe(7);
    expect(other).toBe("");
  });

  it("receives lines in the order of the calls", async () => {
    const process = child(`${createLog} log.info("a"); log.child({ r: 1 }).warn("b\\nc");`);
    const lines = (await textOf(process.stdout)).split("\n");
    expect(lines.map((line) => (line === "" ? "" : JSON.parse(line).msg))).toEqual([
      "a",
      "b\nc",
      "",
    ]);
  });

  it("passes through a replaced process.stdout.write", () => {
    const seen: unknown[] = [];
    vi.spyOn(process.stdout, "write").mockImplementation((text) => seen.push(text) > 0);
    writeToStandardOutput("line");
    expect(seen).toEqual(["line\n"]);
    vi.spyOn(process.stdout, "write").mockImplementation(() => {
      throw new Error("closed");
    });
    expect(() => writeToStandardOutput("line")).not.toThrow();
  });
});

describe("writeAll", () => {
  it("continues after a partial write, even within a letter, and after a full pipe", () => {
    const written: number[] = [];
    const answers = [3, "EAGAIN", 1, "EAGAIN", "EAGAIN", 100];
    writeAll("aäöüb\n", (_descriptor, given, offset, length) => {
      const bytes = Buffer.from(given.subarray(offset, offset + length));
      const answer = answers.shift() ?? 0;
      if (typeof answer === "string") throw Object.assign(new Error(answer), { code: answer });
      written.push(...bytes.subarray(0, answer));
      return Math.min(bytes.length, answer);
    });
    expect(Buffer.from(written).toString()).toBe("aäöüb\n");
    expect(answers).toEqual([]);
  });

  it("writes a line of any length", () => {
    const line = `${"ä".repeat(100_000)}\n`;
    const written: Buffer[] = [];
    writeAll(line, (_descriptor, given, offset, length) => {
      const part = Buffer.from(given.subarray(offset, offset + Math.min(length, 65_536)));
      return written.push(part) > 0 ? part.byteLength : 0;
    });
    expect(Buffer.concat(written).toString()).toBe(line);
  });

  it("throws any error other than a full pipe", () => {
    const broken = Object.assign(new Error("gone"), { code: "EPIPE" });
    expect(() =>
      writeAll("a", () => {
        throw broken;
      }),
    ).toThrow(broken);
    expect(() =>
      writeAll("a", () => {
        throw "odd";
      }),
    ).toThrow("odd");
  });
});
