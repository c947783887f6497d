import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import * as jose from "jose";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createRemoteKeys, KeysUnavailableError, type RemoteKeyLimits } from "./remote-keys.ts";

const key = (kid: string) => ({
  kty: "OKP",
  crv: "Ed25519",
  x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
  kid,
  use: "sig",
});
const serving =
  (...kids: string[]) =>
  (response: ServerResponse) =>
    response.end(JSON.stringify({ keys: kids.map(key) }));
const silent = () => undefined;
const down = (response: ServerResponse) => response.writeHead(503).end("out of order");

let answer: (response: ServerResponse) => unknown = down;
let asked = 0;
let now = 0;
let url: URL;
const server = createServer((_, response) => {
  asked += 1;
  answer(response);
});

beforeAll(async () => {
  await once(server.listen(0, "127.0.0.1"), "listening");
  url = addressOf(server);
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  [asked, now] = [0, 1_000_000];
});

function addressOf(listening: Server): URL {
  // A server that listens on a port has an AddressInfo.
  return new URL(`http://127.0.0.1:${(listening.address() as AddressInfo).port}/keys`);
}

function keyFinder(limits: Partial<RemoteKeyLimits> = {}, from = url) {
  const { find } = createRemoteKeys(jose, from, { now: () => now }, limits);
  return async (kid: string) => {
    // The finder reads the header and nothing of the token.
    await find({ alg: "EdDSA", kid }, {} as jose.FlattenedJWSInput);
    return "found";
  };
}

describe("while the endpoint answers", () => {
  test("fetches keys once for any number of tokens, even concurrent ones", async () => {
    answer = serving("a", "b");
    const find = keyFinder();
    await Promise.all([find("a"), find("b"), find("a")]);
    now += 599_999;
    await find("a");
    expect(asked).toBe(1);
  });

  test("fetches keys again after ten minutes, so that a revoked one disappears", async () => {
    answer = serving("a");
    const find = keyFinder();
    await find("a");
    answer = serving("b");
    now += 600_000;
    await expect(find("a")).rejects.toBeInstanceOf(jose.errors.JWKSNoMatchingKey);
    expect(asked).toBe(2);
  });

  test("fetches keys again after the clock was set back to before their fetch", async () => {
    answer = serving("a", "b");
    const find = keyFinder();
    await find("a");
    answer = serving("b", "c");
    now -= 3_600_000;
    await expect(find("a")).rejects.toBeInstanceOf(jose.errors.JWKSNoMatchingKey);
    expect(await find("c")).toBe("found");
    expect(asked).toBe(2);
  });

  test("an unknown key causes a fetch, but not before the cooldown ends", async () => {
    answer = serving("a");
    const find = keyFinder();
    await find("a");
    answer = serving("a", "b");
    for (let round = 0; round < 20; round++)
      await expect(find(`junk ${round}`)).rejects.toBeInstanceOf(jose.errors.JWKSNoMatchingKey);
    await expect(find("b")).rejects.toBeInstanceOf(jose.errors.JWKSNoMatchingKey);
    expect(asked).toBe(1);
    now += 10_000;
    expect(await find("b")).toBe("found");
    expect(asked).toBe(2);
  });
});

describe("while the endpoint is down", () => {
  test("known keys remain valid for an hour, and no longer", async () => {
    answer = serving("a");
    const find = keyFinder();
    await find("a");
    answer = down;
    now += 600_000;
    expect(await find("a")).toBe("found");
    now += 2_999_999;
    expect(await find("a")).toBe("found");
    now += 1;
    await expect(find("a")).rejects.toBeInstanceOf(KeysUnavailableError);
  });

  test("an unknown key is not called wrong, because it may be new", async () => {
    answer = serving("a");
    const find = keyFinder();
    await find("a");
    answer = down;
    now += 10_000;
    await expect(find("b")).rejects.toBeInstanceOf(KeysUnavailableError);
    expect(await find("a")).toBe("found");
  });

  test("asks at most every two seconds, until the first valid answer", async () => {
    answer = down;
    const find = keyFinder();
    for (let round = 0; round < 20; round++)
      await expect(find("a")).rejects.toBeInstanceOf(KeysUnavailableError);
    expect(asked).toBe(1);
    now += 2000;
    answer = serving("a");
    expect(await find("a")).toBe("found");
    expect(asked).toBe(2);
  });

  test("a key is unknown again, not unavailable, once the outage is over", async () => {
    answer = down;
    const find = keyFinder();
    await expect(find("a")).rejects.toBeInstanceOf(KeysUnavailableError);
    now += 2000;
    answer = serving("a");
    await expect(find("b")).rejects.toBeInstanceOf(jose.errors.JWKSNoMatchingKey);
    expect(await find("a")).toBe("found");
  });

  test("asks again after the clock was set back to before the failure", async () => {
    answer = down;
    const find = keyFinder();
    await expect(find("a")).rejects.toBeInstanceOf(KeysUnavailableError);
    now -= 3_600_000;
    answer = serving("a");
    expect(await find("a")).toBe("found");
    expect(asked).toBe(2);
  });

  test("known keys stay in use when the clock is set back to before their fetch", async () => {
    answer = serving("a");
    const find = keyFinder();
    await find("a");
    answer = down;
    now -= 3_600_000;
    expect(await find("a")).toBe("found");
  });

  test("reports the outage at the first token", async () => {
    const nobody = createServer();
    await once(nobody.listen(0, "127.0.0.1"), "listening");
    const refusing = addressOf(nobody);
    await new Promise((resolve) => nobody.close(resolve));
    const failure = keyFinder({}, refusing)("a");
    await expect(failure).rejects.toBeInstanceOf(KeysUnavailableError);
    await expect(failure).rejects.toThrow(
      `the key set at ${refusing.href} cannot be fetched; check auth.jwks`,
    );
    await expect(failure).rejects.toHaveProperty("cause");
  });
});

describe("counts as a failure", () => {
  test.each<[string, (response: ServerResponse) => unknown, RegExp]>([
    ["with status 503", down, /status 503/],
    ["with status 204 and no body", (response) => response.writeHead(204).end(), /status 204/],
    [
      "that redirects",
      (response) => response.writeHead(302, { location: "/other" }).end(),
      /status 302/,
    ],
    ["that is no JSON", (response) => response.end("<html>"), /JSON/],
    ["that is no UTF-8", (response) => response.end(Buffer.of(0x22, 0xff, 0x22)), /encoded/],
    ["that is no key set", (response) => response.end('{"keys":{}}'), /malformed/],
    [
      "that is too long",
      (response) => response.end(JSON.stringify({ keys: [], filler: "x".repeat(300_000) })),
      /longer than 262144 bytes/,
    ],
    [
      "that breaks off",
      (response) =>
        response.writeHead(200, { "content-length": "100" }).write("{", () => response.destroy()),
      /terminated/,
    ],
    ["that does not come in time", silent, /timeout/],
  ])("%s, and keeps the known keys", async (_, failing, message) => {
    const limits = failing === silent ? { timeoutMs: 1_000 } : {};
    answer = failing;
    await expect(keyFinder(limits)("a")).rejects.toHaveProperty(
      "cause.message",
      expect.stringMatching(message),
    );
    answer = serving("a");
    const find = keyFinder(limits);
    await find("a");
    answer = failing;
    now += 600_000;
    expect(await find("a")).toBe("found");
  });
});
