// own process: it replaces modules
import { expect, test, vi } from "vitest";
import { loadSts } from "./tenant-sessions.ts";

vi.mock("@aws-sdk/client-sts", () => {
  throw new Error("Cannot find package '@aws-sdk/client-sts'");
});

test("explains how to install the STS client if it is missing", async () => {
  await expect(loadSts()).rejects.toThrow(
    "isolation: @aws-sdk/client-sts cannot be loaded; npm install @aws-sdk/client-sts",
  );
});
