import { expect, test } from "vitest";
import { unplaced } from "../../../test/support/unplaced.ts";
import { buildServer } from "../../app/server/server.ts";
import { BootError } from "../../base/errors/boot.ts";
import {
  access,
  createTenantConfig,
  createUserConfig,
  defineFeature,
  type Feature,
} from "../../index.ts";
import type { Limits } from "./limits.ts";

const work = defineFeature("work", (r) =>
  r.config({
    keys: {
      atOnce: createTenantConfig("number", { default: 2, bounds: { min: 1, max: 50 } }),
      ownAtOnce: createUserConfig("number", { default: 2, bounds: { min: 1, max: 50 } }),
      plan: createTenantConfig("text", { default: "free" }),
    },
  }),
);

function problemsOf(limits: Limits, feature: Feature = work) {
  try {
    buildServer({ features: [feature], limits });
    return [];
  } catch (error) {
    if (error instanceof BootError) return unplaced(error.problems);
    throw error;
  }
}

test("requires at least 1 MiB for unread responses", () => {
  expect(problemsOf({ unreadBytes: 1_048_576 })).toEqual([]);
  for (const unreadBytes of [1_048_575, 1_048_576.5, "2000000" as never]) {
    expect(problemsOf({ unreadBytes })).toMatchObject([
      {
        key: "limits.unreadBytes",
        fix: expect.stringContaining("a whole number of bytes from 1,048,576"),
      },
    ]);
  }
});

test("refuses a total budget below the largest body", () => {
  expect(problemsOf({ bodyBytes: 100, bufferedBytes: 100 })).toEqual([]);
  expect(problemsOf({ bufferedBytes: 1_048_575 })).toEqual([
    {
      feature: "",
      key: "limits.bufferedBytes",
      rule: "limits-order",
      message: "1048575 is below limits.bodyBytes, 1048576",
      fix: "use 1048576 or more, or lower limits.bodyBytes",
    },
  ]);
});

test("refuses a total budget below the largest body of a handler, with all other problems", () => {
  const uploads = defineFeature("uploads", (r) => {
    const open = { access: access.everyone, handler: () => undefined };
    const limits = { bodyBytes: 200_000_000 };
    r.write("upload.add", { ...open, route: "POST /uploads", limits });
    r.write("upload.note", { ...open, route: "POST /notes" });
  });
  expect(problemsOf({ bufferedBytes: 200_000_000 }, uploads)).toEqual([]);
  expect(problemsOf({}, uploads)).toEqual([]);
  expect(problemsOf({ bufferedBytes: 199_999_999, unreadBytes: 1 }, uploads)).toEqual([
    expect.objectContaining({ key: "limits.unreadBytes" }),
    {
      feature: "",
      key: "limits.bufferedBytes",
      rule: "limits-order",
      message: "199999999 is below uploads.upload.add.limits.bodyBytes, 200000000",
      fix: "use 200000000 or more, or lower uploads.upload.add.limits.bodyBytes",
    },
  ]);
});

test("takes a number from 1 or a number key as a tenant's requests in flight", () => {
  expect(problemsOf({ inFlightPerTenant: 1 })).toEqual([]);
  expect(problemsOf({ inFlightPerTenant: work.atOnce })).toEqual([]);
  for (const inFlightPerTenant of [0, 1.5, "2" as never, {} as never, { id: 7 } as never]) {
    expect(problemsOf({ inFlightPerTenant })).toMatchObject([
      {
        key: "limits.inFlightPerTenant",
        rule: "option-type",
        fix: "use a whole number from 1, or a number key",
      },
    ]);
  }
});

test.each([
  ["of a text", work.plan as never],
  ["of each user", work.ownAtOnce],
  ["of no feature", { ...work.atOnce, id: "other:config:at-once" }],
])("refuses the key %s as a tenant's requests in flight", (_, inFlightPerTenant) => {
  expect(problemsOf({ inFlightPerTenant })).toEqual([
    {
      feature: "",
      key: "limits.inFlightPerTenant",
      rule: "limit-key",
      message: `"${inFlightPerTenant.id}" is not a number key of this server that users share`,
      fix: "pass the handle of a key that is",
    },
  ]);
});
