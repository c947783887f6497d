import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { server } from "../../examples/files/server.ts";
import { documentText } from "../../src/app/openapi/openapi.ts";
import { serverDocument } from "../../src/app/routes/openapi-document.ts";
import { serverInternals } from "../../src/app/server/server.ts";
import { contractOf, contractText } from "../../src/tools/contract/contract.ts";

const folder = join(import.meta.dirname, "../../examples/files");

test("the sample's contract matches the committed one; npm run contract regenerates it", async () => {
  const { contract, unsaid } = await contractOf(serverInternals(server), folder);
  expect(unsaid).toEqual([]);
  expect(contractText(contract)).toBe(await readFile(join(folder, "contract.json"), "utf8"));
});

test("the document that the client guide is checked against is the sample's own; npm run contract regenerates it", async () => {
  const { document, unsaid } = await serverDocument(serverInternals(server), folder);
  expect(unsaid).toEqual([]);
  expect(documentText(document)).toBe(
    await readFile(join(import.meta.dirname, "../fixtures/files-api.json"), "utf8"),
  );
});
