import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { nodeTooOld } from "./node-version.ts";

const { engines } = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../../package.json"), "utf8"),
);

test.each(["18.20.8", "20.20.2", "22.9.0", "22.12.0", "22.17.1"])(
  "Node %s is too old, and the message names the required version",
  (version) => {
    expect(nodeTooOld(version)).toBe(
      `this command needs Node 22.18 or newer, and this is Node ${version}`,
    );
    expect(engines.node).toBe(">=22.18");
  },
);

test.each(["22.18.0", "22.20.1", "23.0.0", "24.1.0", "100.0.0"])(
  "Node %s is supported",
  (version) => {
    expect(nodeTooOld(version)).toBeUndefined();
  },
);
