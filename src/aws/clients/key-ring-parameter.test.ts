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

  expect(await parameter.replace("{}", 1)).toBe(true);
  expect(puts).toEqual([
    { Name: "/ring", Value: "{}", Type: "SecureString", Overwrite: true, KeyId: "alias/own" },
  ]);
  parameter.close();
});

test("fails before it writes a ring that was deleted in the meantime", async () => {
  const { parameter, puts } = await parameterOf([{ Parameters: [] }]);

  await expect(parameter.replace("{}", 1)).rejects.toThrow(
    "the parameter /ring no longer exists; create a ring with new keys",
  );
  expect(puts).toEqual([]);
  parameter.close();
});

/** An SSM that fails the first call of PutParameter, once it has written the version. */
async function lossyParameter(versions: string[]) {
  let isLost = false;
  const server = createServer(async (request, response) => {
    const { Name, Value, Overwrite } = JSON.parse(await text(request));
    const operation = String(request.headers["x-amz-target"]).slice("AmazonSSM.".length);
    const send = (status: number, answer: object) =>
      response
        .writeHead(status, { "content-type": "application/x-amz-json-1.1" })
        .end(JSON.stringify(answer));
    if (operation === "DescribeParameters")
      return send(200, { Parameters: [{ Name, KeyId: "alias/own" }] });
    if (operation === "GetParameter") {
      const version = Number(Name.split(":")[1] ?? versions.length);
      const found = { Type: "SecureString", Value: versions[version - 1], Version: version };
      return send(200, { Parameter: { ...found, LastModifiedDate: 1 } });
    }
    if (versions.length > 0 && Overwrite !== true)
      return send(400, { __type: "ParameterAlreadyExists" });
    versions.push(Value);
    if (isLost) return send(200, { Version: versions.length });
    isLost = true;
    return send(500, { __type: "InternalServerError" });
  }).listen(0, "127.0.0.1");
  servers.push(server);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // it listens on TCP, so its address is one
  return openKeyRingParameter("/ring", {
    endpoint: `http://127.0.0.1:${port}`,
    region: "us-east-1",
    credentials: { accessKeyId: "x", secretAccessKey: "x" },
  });
}

test("a change is recognized as its own if the SDK repeats it because the answer was lost", async () => {
  const versions = ["first"];
  const parameter = await lossyParameter(versions);
  expect(await parameter.replace("second", 1)).toBe(true);
  expect(versions).toEqual(["first", "second", "second"]);
  expect(await parameter.replace("third", 2)).toBe(false);
  parameter.close();
});

test("a ring is recognized as its own if the SDK creates it again because the answer was lost", async () => {
  const parameter = await lossyParameter([]);
  await parameter.create("first", undefined);
  await expect(parameter.create("second", undefined)).rejects.toMatchObject({
    name: "ParameterAlreadyExists",
  });
  parameter.close();
});
