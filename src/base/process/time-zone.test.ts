import { expect, test } from "vitest";
import { isZoneName, knownZone } from "./time-zone.ts";

test.each([
  ["Europe/Berlin", true],
  ["UTC", true],
  ["Etc/GMT+5", true],
  ["America/Argentina/Buenos_Aires", true],
  ["+02:00", false],
  ["", false],
  ["Europe/Berlin\n", false],
  [`Europe/${"x".repeat(100)}`, false],
  [7, false],
])("%j looks like the name of a time zone: %s", (zone, isName) => {
  expect(isZoneName(zone)).toBe(isName);
});

test.each([
  ["europe/berlin", "Europe/Berlin"],
  ["etc/utc", "UTC"],
  ["Moon/Base", undefined],
])("the main name of %s is %s", (zone, name) => {
  expect(knownZone(zone)).toBe(name);
});
