import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, expect, test } from "vitest";
import { openKeyRingParameter } from "./key-ring-parameter.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** Opens the parameter of an SSM whose DescribeParameters returns `pages`. `puts` are the bodies of PutParameter. */
async function parameterOf(pages: readonly object[]) {
  const puts: unknown[] = [];
  let described = 0;
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await text(request));
    const isPut = request.headers["x-amz-target"] === "AmazonSSM.PutParameter";
    if (isPut) puts.push(body);
    const answer = isPut ? { Version: 2 } : pages[described++];
    response
      .writeHead(200, { "content-type": "application/x-amz-json-1.1" })
      .end(JSON.stringify(answer));
  }).listen(0, "127.0.0.1");
  servers.push(server);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // it listens on TCP, so its address is one
  const parameter = await openKeyRingParameter("/ring", {
    endpoint: `http://127.0.0.1:${port}`,
    region: "us-east-1",
    credentials: { accessKeyId: "x", secretAccessKey: "x" },
  });
  return { parameter, puts };
}

test("finds the KMS key of a ring that is not on the first page of parameters", async () => {
  const { parameter, puts } = await parameterOf([
    { Parameters: [], NextToken: "more" },
    { NextToken: "still" },
    { Parameters: [{ Name: "/ring", KeyId: "alias/own" }] },
  ]);

  expect(await parameter.replace("{}")).toBe(2);
  expect(puts).toEqual([
    { Name: "/ring", Value: "{}", Type: "SecureString", Overwrite: true, KeyId: "alias/own" },
  ]);
  parameter.close();
});

test("fails before it writes a ring that was deleted in the meantime", async () => {
  const { parameter, puts } = await parameterOf([{ Parameters: [] }]);

  await expect(parameter.replace("{}")).rejects.toThrow(
    "the parameter /ring no longer exists; create a ring with new keys",
  );
  expect(puts).toEqual([]);
  parameter.close();
});
