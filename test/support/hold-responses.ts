import { afterAll, afterEach } from "vitest";
import { takeHeld } from "./held/hold.ts";

// Each response of a server under test is compared with the server's own OpenAPI document, once its test has ended.

async function expectAgreement(): Promise<void> {
  const held = takeHeld();
  if (held.length === 0) return;
  const { disagreementOf } = await import("./held/disagreement.ts"); // with its validator: most files have no server
  const found = new Set<string>();
  for (const response of held) {
    const disagreement = await disagreementOf(response);
    if (disagreement === undefined) continue;
    const { method, path } = response.request;
    found.add(`${method} ${path.slice(0, 200)} is not as its document has it: ${disagreement}`);
  }
  if (found.size > 0) throw new Error([...found].join("\n"));
}

afterEach(expectAgreement);
afterAll(expectAgreement); // what its hooks have asked for
