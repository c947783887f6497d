import { expect, test } from "vitest";
import { createServerLogger } from "../../base/log/server-logger.ts";
import {
  type AddressOptions,
  addressOf,
  ListenError,
  listenError,
  portOf,
  warnOfIgnoredAddress,
} from "./address.ts";

test("the port is that of the options, else PORT, else 3000", () => {
  expect(portOf(0, { PORT: "8080" })).toBe(0);
  expect(portOf(undefined, { PORT: "8080" })).toBe(8_080);
  for (const variables of [{}, { PORT: "" }]) expect(portOf(undefined, variables)).toBe(3_000);
});

test("a port that is none is refused with its value", () => {
  for (const port of [-1, 1.5, 65_536])
    expect(() => portOf(port, {})).toThrow(`PORT: ${port} is not a port`);
  expect(() => portOf(undefined, { PORT: "http" })).toThrow('PORT: "http" is not a port');
});

test("outside of a Web Function, the address is the given one", () => {
  expect(addressOf({ port: 0, host: "127.0.0.1" }, {})).toEqual({ port: 0, host: "127.0.0.1" });
  expect(addressOf({}, { PORT: "8080" })).toEqual({ port: 8_080, host: undefined });
});

test.each([
  ["0.0.0.0:8080", { host: "0.0.0.0", port: 8_080 }],
  ["localhost:1", { host: "localhost", port: 1 }],
  ["[::]:65535", { host: "::", port: 65_535 }],
  ["[fd00::1]:3000", { host: "fd00::1", port: 3_000 }],
])("a Web Function listens on %s, whatever else is given", (endpoint, address) => {
  const variables = { AWS_LAMBDA_HTTP_ENDPOINT: endpoint, PORT: "no port" };
  expect(addressOf({ port: 1, host: "::1" }, variables)).toEqual(address);
});

test.each([
  ...["", "8080", ":8080", "0.0.0.0", "0.0.0.0:", "0.0.0.0:0", "0.0.0.0:65536", "0.0.0.0:08"],
  ...["http://0.0.0.0:8080", "0.0.0.0:8080/", "::1:8080", "[::1]", "a b:80", "host:80x"],
])("the address %j of a Web Function is refused", (endpoint) => {
  expect(() => addressOf({}, { AWS_LAMBDA_HTTP_ENDPOINT: endpoint })).toThrow(
    `AWS_LAMBDA_HTTP_ENDPOINT: ${JSON.stringify(endpoint)} is not a host and a port, such as 0.0.0.0:8080`,
  );
});

test("a Web Function does not terminate TLS", () => {
  const variables = { AWS_LAMBDA_HTTP_ENDPOINT: "0.0.0.0:8080" };
  expect(() => addressOf({ tls: { key: "", cert: "" } }, variables)).toThrow("tls: Lambda sends");
});

test.each<[AddressOptions, NodeJS.ProcessEnv, object | undefined]>([
  [{}, {}, undefined],
  [{}, { PORT: "" }, undefined],
  [{ port: 8_080, host: "0.0.0.0" }, { PORT: "8080" }, undefined],
  [{ port: 3_000 }, {}, { port: 3_000 }],
  [{}, { PORT: "3000" }, { port: "3000" }],
  [{ port: 8_080 }, { PORT: "3000" }, undefined],
  [{ host: "127.0.0.1" }, {}, { host: "127.0.0.1" }],
])("of %j and %j, a Web Function says that it ignores %j", (options, variables, ignored) => {
  const lines: unknown[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line));
  const log = createServerLogger({ environment: "production", env: {}, write });
  const env = { ...variables, AWS_LAMBDA_HTTP_ENDPOINT: "0.0.0.0:8080" };
  warnOfIgnoredAddress(log, options, env, addressOf(options, env));
  expect(lines).toMatchObject(
    ignored === undefined
      ? []
      : [{ level: "warn", msg: "server.address_ignored", ignored, address: "0.0.0.0:8080" }],
  );
});

const failure = (code: string) => Object.assign(new Error(`listen ${code}: :::80`), { code });

test.each([
  [
    "EADDRINUSE",
    "Port 80 is in use: stop the process that listens on it, or set PORT to another one",
  ],
  ["EACCES", "Port 80 may not be used by this user: set PORT to one above 1023"],
])("%s becomes one sentence that tells how to fix it", (code, message) => {
  const error = listenError(failure(code), 80);
  expect(error).toBeInstanceOf(ListenError);
  expect((error as ListenError).message).toBe(message); // safe: it is one
});

test("leaves any other error unchanged", () => {
  const error = failure("EADDRNOTAVAIL");
  expect(listenError(error, 80)).toBe(error);
});
