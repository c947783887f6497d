import { expect, test } from "vitest";
import { endPolls } from "./end-polls.ts";

test("polls of a stack that has ended are over: nothing fails", async () => {
  expect(await endPolls("http://127.0.0.1:1/000000000000/jobs")).toBeUndefined();
});
