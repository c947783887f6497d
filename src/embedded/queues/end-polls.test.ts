import { expect, test } from "vitest";
import { endPolls } from "./end-polls.ts";

test("does not fail when the stack has already ended", async () => {
  expect(await endPolls("http://127.0.0.1:1/000000000000/jobs")).toBeUndefined();
});
