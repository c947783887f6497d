import { expect, test } from "vitest";
import { server as sample } from "../../examples/files/server.ts";
import { serverDocument } from "../../src/app/routes/openapi-document.ts";
import { serverInternals } from "../../src/app/server/server.ts";
import { server as everything } from "./every-feature.ts";
import { problemsOf } from "./validators.ts";

test.each([
  ["the sample", sample],
  ["an application with every feature", everything],
])("two validators accept the document of %s", async (_, server) => {
  const { document, unsaid } = await serverDocument(serverInternals(server));
  expect(unsaid).toEqual([]);
  expect(await problemsOf(document)).toEqual([]);
});
