import fc from "fast-check";
import { expect, test } from "vitest";
import { createSystemConfig, createTenantConfig, createUserConfig } from "./declaration.ts";
import type { ConfigKeyRegistry, KeyDeclaration } from "./key.ts";
import { parameterOverrides } from "./parameter-overrides.ts";

const registry = registryOf({
  maxUploadSizeMb: createTenantConfig("number", { default: 10, bounds: { min: 1, max: 100 } }),
  listOrder: createUserConfig("select", { options: ["newest", "name"] }),
  maintenanceMode: createSystemConfig("boolean", { default: false }),
  greeting: createTenantConfig("text", {}),
  quota: createTenantConfig("number", { computed: () => 1 }),
  pin: createTenantConfig("number", { encrypted: true, bounds: { min: 1, max: 9 } }),
});

function registryOf(keys: Record<string, KeyDeclaration<unknown>>): ConfigKeyRegistry {
  const entries = Object.entries(keys).map(([name, { definition }]) => {
    const id = `files:config:${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    return [id, { id, feature: "files", name, definition }] as const;
  });
  return { configKeys: new Map(entries) };
}

const read = (parameters: Record<string, string>, secure = false) =>
  parameterOverrides(
    registry,
    "/app",
    Object.entries(parameters).map(([name, value]) => ({ name, value, secure })),
  );

test("parses values to the types of their keys, however the key is spelled", () => {
  const { overrides, problems } = read({
    "/app/files/max-upload-size-mb": "50",
    "/app/files/listOrder": "name\n",
    "/app/files/maintenance-mode": " true ",
    "/app/files/greeting": " hello ",
    "/app/files/pin": "4",
  });

  expect(problems).toEqual([]);
  expect({ ...overrides }).toEqual({
    "files:config:max-upload-size-mb": 50,
    "files:config:list-order": "name",
    "files:config:maintenance-mode": true,
    "files:config:greeting": " hello ",
    "files:config:pin": 4,
  });
  expect(read({ "/app/files/maintenanceMode": "false" }).overrides).toMatchObject({
    "files:config:maintenance-mode": false,
  });
});

test.each([
  ["/app/files/max-upload-size-mb", "fifty", "override-type"],
  ["/app/files/max-upload-size-mb", "0x10", "override-type"],
  ["/app/files/max-upload-size-mb", "", "override-type"],
  ["/app/files/max-upload-size-mb", "0", "override-bounds"],
  ["/app/files/maintenance-mode", "yes", "override-type"],
  ["/app/files/list-order", "oldest", "override-type"],
  ["/app/files/quota", "5", "override-computed"],
  ["/app/files/nothing", "5", "parameter-unknown"],
  ["/app/files", "5", "parameter-unknown"],
  ["/app/files/greeting/deeper", "5", "parameter-unknown"],
  ["/app/files/Max-Upload-Size-Mb", "5", "parameter-unknown"],
  ["/application/files/greeting", "5", "parameter-unknown"],
  ["/app/__proto__/constructor", "5", "parameter-unknown"],
])("refuses %s with the value %j under its name: %s", (name, value, rule) => {
  const { overrides, problems } = read({ [name]: value });
  expect(problems).toMatchObject([{ key: name, rule }]);
  expect({ ...overrides }).toEqual({});
});

test("reports all problems at once, and suggests similar keys", () => {
  const { problems } = read({
    "/app/files/greting": "x",
    "/app/files/pin": "x",
    "/app/files/quota": "x",
    "/app/ä b": "x",
  });
  expect(problems.map(({ key }) => key)).toEqual([
    "/app/files/greting",
    "/app/files/pin",
    "/app/files/quota",
    "/app/files/quota",
    '"/app/ä b"',
  ]);
  expect(problems[0]?.fix).toBe("did you mean /app/files/greeting?");
});

test("refuses one key under two names", () => {
  const { problems } = read({
    "/app/files/max-upload-size-mb": "5",
    "/app/files/maxUploadSizeMb": "6",
  });
  expect(problems).toMatchObject([{ key: "/app/files/maxUploadSizeMb", rule: "parameter-twice" }]);
  expect(problems[0]?.message).toContain("/app/files/max-upload-size-mb");
});

test("treats an invalid declaration as an unknown key", () => {
  const id = "files:config:broken";
  const broken = {
    configKeys: new Map([[id, { id, feature: "files", name: "broken", definition: 7 as never }]]),
  };
  const { problems } = parameterOverrides(broken, "/app", [
    { name: "/app/files/broken", value: "1", secure: false },
  ]);
  expect(problems).toMatchObject([{ rule: "parameter-unknown" }]);
});

test("never shows the value of an encrypted key, a SecureString or an unknown key", () => {
  const names = ["max-upload-size-mb", "list-order", "maintenance-mode", "quota", "pin", "unknown"];
  fc.assert(
    fc.property(
      fc.constantFrom(...names),
      fc.stringMatching(/^[a-z]{12,40}$/),
      fc.boolean(),
      (name, secret, secure) => {
        const isSecret = secure || name === "pin" || name === "unknown";
        const { problems } = read({ [`/app/files/${name}`]: secret }, secure);
        expect(problems.length).toBeGreaterThan(0);
        if (isSecret) expect(JSON.stringify(problems)).not.toContain(secret);
      },
    ),
  );
});

test("reads a former name when the current one is absent, and refuses two former names", () => {
  const renamed = registryOf({
    limit: createTenantConfig("number", { formerly: ["files:config:max-mb", "old:config:max"] }),
  });
  const readRenamed = (parameters: Record<string, string>) =>
    parameterOverrides(
      renamed,
      "/app",
      Object.entries(parameters).map(([name, value]) => ({ name, value, secure: false })),
    );

  expect(readRenamed({ "/app/old/max": "1" })).toEqual({
    overrides: { "files:config:limit": 1 },
    problems: [],
  });
  expect(readRenamed({ "/app/files/maxMb": "2" })).toEqual({
    overrides: { "files:config:limit": 2 },
    problems: [],
  });
  expect(readRenamed({ "/app/files/limit": "3", "/app/files/max-mb": "2" }).overrides).toEqual({
    "files:config:limit": 3,
  });
  expect(readRenamed({ "/app/old/max": "1", "/app/files/max-mb": "2" }).problems).toEqual([
    expect.objectContaining({ key: "/app/files/max-mb", rule: "parameter-twice" }),
  ]);
  expect(
    readRenamed({ "/app/old/max": "1", "/app/files/max-mb": "2", "/app/files/limit": "3" }),
  ).toEqual({
    overrides: { "files:config:limit": 3 },
    problems: [],
  });
  expect(readRenamed({ "/app/files/max-mb": "many" }).problems).toEqual([
    expect.objectContaining({ key: "/app/files/max-mb", rule: "override-type" }),
  ]);
});
