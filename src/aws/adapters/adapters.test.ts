import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { expect, test } from "vitest";
import { createRuntime } from "../../app/server/create-runtime.ts";
import { buildServer } from "../../app/server/server.ts";
import { openAwsAdapters } from "./adapters.ts";

test("closing the adapters closes their connections to DynamoDB", async () => {
  const sockets: Socket[] = [];
  const http = createServer((_request, response) => response.end("{}")).listen(0, "127.0.0.1");
  http.keepAliveTimeout = 0; // the server closes none of them
  http.on("connection", (socket) => sockets.push(socket));
  await once(http, "listening");
  const { port } = http.address() as AddressInfo; // safe: it listens on a port
  const env = {
    AWS_ENDPOINT_URL: `http://127.0.0.1:${port}`,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
  };
  const runtime = createRuntime(buildServer({ features: [], environment: "test" }), {
    variables: env,
    openAdapters: (opened) => openAwsAdapters(opened, env),
    write: () => {},
  });
  const { database } = await runtime.adapters.open();
  await database.send(new GetCommand({ TableName: "t", Key: { id: "1" } }));
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([false]);
  const closing = Promise.all(sockets.map((socket) => once(socket, "close")));
  await runtime.close();
  await closing;
  http.close();
});
