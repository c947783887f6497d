import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { defaultTimes } from "../../src/base/process/shutdown-limits.ts";
import { root } from "./package.ts";

interface Service {
  readonly image?: string;
  readonly build?: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly stop_grace_period?: string;
}

// Safe: the file of this repository.
const { services } = parse(readFileSync(join(root, "docker-compose.yml"), "utf8")) as {
  readonly services: Readonly<Record<"localstack" | "app", Service>>;
};

test("docker compose uses the LocalStack of the tests, and builds the image of the Dockerfile", () => {
  const runner = readFileSync(join(root, "scripts/localstack/run.mjs"), "utf8");

  expect(services.localstack.image).toMatch(/^localstack\/localstack:\d+\.\d+\.\d+$/);
  expect(runner).toContain(`"${services.localstack.image}"`);
  expect(services.app.build).toBe(".");
});

test("the container knows the LocalStack endpoint, and is reachable from this machine only", () => {
  expect(services.app.environment["AWS_ENDPOINT_URL"]).toBe("http://localstack:4566");
  expect(services.app.ports).toEqual(["127.0.0.1:3000:3000"]);
  const secret =
    /^\$\{KEELSON_AUTH_SECRET:-(.*)\}$/.exec(
      services.app.environment["KEELSON_AUTH_SECRET"] ?? "",
    )?.[1] ?? "";
  expect(secret.length).toBeGreaterThanOrEqual(32);
});

test("the container has enough time to shut down", () => {
  expect(Number.parseInt(services.app.stop_grace_period ?? "", 10) * 1_000).toBeGreaterThan(
    defaultTimes.totalMs,
  );
});
