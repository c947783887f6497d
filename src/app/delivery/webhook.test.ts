import { execFile } from "node:child_process";
import { createSign, generateKeyPairSync } from "node:crypto";
import type { LookupAddress } from "node:dns";
import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Server, Socket } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { promisify } from "node:util";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { signWebhook } from "../../parts/webhooks/standard-webhooks.ts";
import { createNameLookups, type NameLookup } from "./name-lookup.ts";
import { postWebhook, WebhookError, type WebhookRequest } from "./webhook.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

const publicAddress = { address: "93.184.216.34", family: 4 };
const loopback = { address: "127.0.0.1", family: 4 };
const message = {
  id: "msg_1",
  body: '{"name":"Zoë"}',
  secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
  nowMs: 1_700_000_000_999,
};

/** To a server of this test, in development. */
function post(url: string, options: Partial<WebhookRequest> = {}) {
  const lookup = createNameLookups()("acme");
  return postWebhook({
    ...message,
    url,
    allowHttp: true,
    allowPrivate: true,
    timeoutMs: 20_000,
    lookup,
    ...options,
  });
}

async function failureOf(sending: Promise<unknown>): Promise<WebhookError> {
  const failure = await sending.then(
    (result) => new Error(`it was delivered: ${JSON.stringify(result)}`),
    (error: unknown) => error,
  );
  if (!(failure instanceof WebhookError)) throw failure;
  return failure;
}

async function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  // A server that listens on a port has an AddressInfo.
  return (server.address() as AddressInfo).port;
}

/** Unlike `once`, also where the connection is reset. */
const closing = (socket: Socket) => new Promise((resolve) => socket.once("close", resolve));

const serve = async (listener: RequestListener) =>
  `http://127.0.0.1:${await listen(createServer(listener))}/hook`;
const serveRaw = async (talk: (socket: Socket) => void) => {
  const server = createTcpServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => talk(socket));
  });
  return `http://127.0.0.1:${await listen(server)}/hook`;
};
const answering = (status: number) => (_: IncomingMessage, response: ServerResponse) =>
  response.writeHead(status).end();

function answeringLookup(...addresses: LookupAddress[]) {
  return vi.fn<NameLookup>(async () => addresses);
}

describe("sending", () => {
  async function received(options: Partial<WebhookRequest> = {}) {
    let request: IncomingMessage | undefined;
    let body = "";
    const url = await serve(async (incoming, response) => {
      request = incoming;
      for await (const chunk of incoming.setEncoding("utf8")) body += chunk;
      response.writeHead(204).end();
    });
    expect(await post(`${url}?a=b`, options)).toEqual({ status: 204 });
    return { method: request?.method, url: request?.url, headers: request?.headers, body };
  }

  test("posts a message to path and query, signed at the time of the attempt", async () => {
    const { method, url, headers, body } = await received();
    expect({ method, url, body }).toEqual({ method: "POST", url: "/hook?a=b", body: message.body });
    expect(headers).toMatchObject({
      "content-type": "application/json",
      "content-length": "15",
      "webhook-id": "msg_1",
      "webhook-timestamp": "1700000000",
      "webhook-signature": signWebhook({ ...message, timestampSeconds: 1_700_000_000 }),
      connection: "close",
    });
  });

  test("signs nothing without a secret", async () => {
    const { headers } = await received({ secret: undefined });
    expect(headers).toMatchObject({ "webhook-id": "msg_1" });
    expect(headers).not.toHaveProperty("webhook-signature");
  });

  test("sends the given headers, which may set another content type", async () => {
    const { headers } = await received({
      headers: { "Content-Type": "application/cloudevents+json", "X-Tenant": "acme" },
    });
    expect(headers).toMatchObject({
      "content-type": "application/cloudevents+json",
      "x-tenant": "acme",
    });
  });

  test.each([
    "Host",
    "content-length",
    "Transfer-Encoding",
    "connection",
    "expect",
    "Webhook-Signature",
    "webhook-id",
  ])("refuses the header %s", async (name) => {
    const failure = await failureOf(
      post("http://127.0.0.1:9/", { headers: { [name]: "secret-value" } }),
    );
    expect(failure).toMatchObject({
      isRetryable: false,
      message: `webhook to 127.0.0.1:9/: the header ${name} cannot be set`,
    });
  });

  test("refuses a header value that would inject another header, without showing it", async () => {
    const failure = await failureOf(
      post("http://127.0.0.1:9/", { headers: { authorization: "key\r\nhost: inside" } }),
    );
    expect(failure.isRetryable).toBe(false);
    expect(failure.message).toBe(
      'webhook to 127.0.0.1:9/: Invalid character in header content ["authorization"]',
    );
  });

  test("refuses an empty secret", async () => {
    const failure = await failureOf(post("http://127.0.0.1:9/", { secret: "" }));
    expect(failure).toMatchObject({
      isRetryable: false,
      message: expect.stringContaining("the secret is empty"),
    });
  });

  test("opens a new connection for each request", async () => {
    const ports = new Set<number | undefined>();
    const url = await serve((request, response) => {
      ports.add(request.socket.remotePort);
      response.end("done");
    });
    await post(url);
    await post(url);
    expect(ports.size).toBe(2);
  });

  test("ignores a proxy in the environment", async () => {
    const asked: (string | undefined)[] = [];
    const proxyUrl = await serve((request, response) => {
      asked.push(request.url);
      response.end();
    });
    const proxy = new URL(proxyUrl).origin;
    const url = await serve(answering(204));
    const request = { ...message, url, allowHttp: true, allowPrivate: true, timeoutMs: 20_000 };
    const script = `import { postWebhook } from ${JSON.stringify(import.meta.resolve("./webhook.ts"))};
      const request = ${JSON.stringify(request)};
      console.log(JSON.stringify(await postWebhook({ ...request, lookup: () => Promise.reject(new Error("not asked")) })));`;
    const env = {
      ...process.env,
      NODE_USE_ENV_PROXY: "1",
      HTTP_PROXY: proxy,
      http_proxy: proxy,
      NO_PROXY: "",
      no_proxy: "",
    };
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--input-type=module", "-e", script],
      { env },
    );
    expect({ stdout, asked }).toEqual({ stdout: '{"status":204}\n', asked: [] });
  });
});

describe("refused URLs", () => {
  test.each([
    ["relative", "/hook", "the URL cannot be parsed"],
    ["http", "http://example.com/", "the URL's scheme is http:, not https:"],
    ["file", "file:///etc/passwd", "the URL's scheme is file:"],
    ["gopher", "gopher://example.com/", "the URL's scheme is gopher:"],
    ["a user", "https://ann@example.com/", "webhook to example.com/: the URL has credentials"],
    ["a password", "https://:pw@example.com/", "webhook to example.com/: the URL has credentials"],
    [
      "too long",
      `https://example.com/${"a".repeat(2_029)}`,
      "the URL is longer than 2048 characters",
    ],
  ])("%s", async (_, url, expected) => {
    const lookup = answeringLookup(publicAddress);
    const failure = await failureOf(post(url, { allowHttp: false, lookup }));
    expect(failure.isRetryable).toBe(false);
    expect(failure.message).toContain(expected);
    expect(lookup).not.toHaveBeenCalled();
  });

  test("other schemes when http is allowed", async () => {
    expect(await failureOf(post("ftp://example.com/"))).toMatchObject({ isRetryable: false });
  });

  test("a URL of 2,048 characters is accepted", async () => {
    const url = await serve(answering(200));
    expect(await post(`${url}?${"a".repeat(2_047 - url.length)}`)).toEqual({ status: 200 });
  });
});

describe("refused addresses", () => {
  test.each([
    "127.0.0.1",
    "127.1",
    "0x7f.1",
    "0177.0.0.1",
    "2130706433",
    "0",
    "127.0.0.1.",
    "①②⑦.⓪.⓪.①",
    "169.254.169.254",
    "10.0.0.1",
    "[::]",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:a9fe:a9fe]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[fd00:ec2::254]",
  ])("the literal %s", async (host) => {
    const lookup = answeringLookup(publicAddress);
    const failure = await failureOf(post(`http://${host}:9/`, { allowPrivate: false, lookup }));
    expect(failure).toMatchObject({
      isRetryable: false,
      message: expect.stringContaining("an address that is not public"),
    });
    expect(lookup).not.toHaveBeenCalled();
  });

  test("the name of this machine", async () => {
    let asked = 0;
    const url = new URL(await serve(() => (asked += 1)));
    const failure = await failureOf(post(`http://localhost:${url.port}/`, { allowPrivate: false }));
    expect(failure).toMatchObject({
      isRetryable: false,
      message: expect.stringContaining("an address that is not public"),
    });
    expect(asked).toBe(0);
  });

  test.each([
    ["the only address", [loopback]],
    ["the first of two", [loopback, publicAddress]],
    ["the last of two", [publicAddress, { address: "::1", family: 6 }]],
    ["the metadata of the cloud", [publicAddress, { address: "169.254.169.254", family: 4 }]],
    ["what is no address", [{ address: "elsewhere", family: 4 }]],
  ])("a name, for %s; the message does not show which address", async (_, addresses) => {
    const connect = vi.spyOn(Socket.prototype, "connect");
    const failure = await failureOf(
      post("https://hooks.example/in?key=k", {
        allowPrivate: false,
        lookup: answeringLookup(...addresses),
      }),
    );
    expect(failure.isRetryable).toBe(false);
    expect(failure.message).toBe(
      "webhook to hooks.example/in: the host has an address that is not public",
    );
    expect(String(failure.cause)).toMatch(/ is not public$/);
    expect(connect).not.toHaveBeenCalled();
  });

  test("a name rebound after the check is not looked up again", async () => {
    const url = new URL(await serve(answering(200)));
    const answers = [[loopback], [publicAddress]];
    const lookup = vi.fn<NameLookup>(async () => answers.shift() ?? []);
    expect(await post(`http://hooks.example:${url.port}/`, { lookup })).toEqual({ status: 200 });
    expect(lookup).toHaveBeenCalledOnce();
  });

  test.each(["http", "https"])(
    "a connection over %s that ends at a private address after a public answer",
    async (scheme) => {
      const bytes: Buffer[] = [];
      const server = createTcpServer((socket) =>
        socket.on("error", () => {}).on("data", (chunk) => bytes.push(chunk)),
      );
      connectEverythingTo(await listen(server));
      const ended = once(server, "connection").then(
        ([socket]: Socket[]) => socket && closing(socket),
      );
      const lookup = answeringLookup(publicAddress);
      const failure = await failureOf(
        post(`${scheme}://hooks.example/`, { allowPrivate: false, lookup }),
      );
      expect(failure).toMatchObject({
        isRetryable: false,
        message: expect.stringContaining("an address that is not public"),
      });
      expect(String(failure.cause)).toContain("127.0.0.1 is not public");
      await ended;
      expect(Buffer.concat(bytes).toString("latin1")).not.toContain("POST");
    },
  );

  test("a connection that ends at a public address is accepted", async () => {
    const url = new URL(await serve(answering(200)));
    connectEverythingTo(Number(url.port), publicAddress.address);
    const lookup = answeringLookup(publicAddress);
    expect(await post("http://hooks.example/", { allowPrivate: false, lookup })).toEqual({
      status: 200,
    });
  });

  /** As a network does that leads elsewhere, whatever the sockets say that they are connected to. */
  function connectEverythingTo(port: number, remoteAddress?: string): void {
    // Node's own callers give a listener second, if any.
    const connect = Socket.prototype.connect as (this: Socket, ...given: unknown[]) => Socket;
    vi.spyOn(Socket.prototype, "connect").mockImplementation(function (
      this: Socket,
      ...given: unknown[]
    ) {
      if (remoteAddress !== undefined)
        Object.defineProperty(this, "remoteAddress", { value: remoteAddress });
      return connect.call(this, { port, host: "127.0.0.1" }, given[1]);
    });
  }
});

describe("the status of an answer", () => {
  test.each([200, 201, 202, 204, 299])("%i counts as delivered", async (status) => {
    expect(await post(await serve(answering(status)))).toEqual({ status });
  });

  test.each([429, 500, 502, 503, 599])("%i can be retried", async (status) => {
    expect(await failureOf(post(await serve(answering(status))))).toMatchObject({
      isRetryable: true,
      message: expect.stringContaining(`answered with status ${status}`),
    });
  });

  test.each([304, 400, 401, 404, 408, 410, 413, 600, 999])("%i is permanent", async (status) => {
    expect(await failureOf(post(await serve(answering(status))))).toMatchObject({
      isRetryable: false,
      message: expect.stringContaining(`answered with status ${status}`),
    });
  });

  test("101 is a permanent failure", async () => {
    const url = await serveRaw((socket) =>
      socket.write(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
      ),
    );
    expect(await failureOf(post(url))).toMatchObject({
      isRetryable: false,
      message: expect.stringContaining("answered with status 101"),
    });
  });

  test.each([301, 302, 303, 307, 308])("%i is permanent and not followed", async (status) => {
    let asked = 0;
    const elsewhere = await serve((_, response) => {
      asked += 1;
      response.end();
    });
    const failure = await failureOf(
      post(await serve((_, r) => r.writeHead(status, { location: elsewhere }).end())),
    );
    expect(failure).toMatchObject({ isRetryable: false });
    expect(failure.message).toContain(
      `answered with status ${status}, and redirects are not followed`,
    );
    expect(asked).toBe(0);
  });

  test("appears in a message with host and path only, at most 200 characters of them", async () => {
    const url = await serve(answering(404));
    const failure = await failureOf(post(`${url}/${"p".repeat(500)}?token=t0ken#fragment`));
    const place = `${url.slice("http://".length)}/${"p".repeat(500)}`.slice(0, 200);
    expect(failure.message).toBe(`webhook to ${place}: answered with status 404`);
    expect(failure.name).toBe("WebhookError");
  });
});

describe("retryable failures without an answer", () => {
  async function closedPort(): Promise<number> {
    const server = createTcpServer();
    const port = await listen(server);
    await once(server.close(), "close");
    return port;
  }

  test("a refused connection", async () => {
    const port = await closedPort();
    const failure = await failureOf(post(`http://127.0.0.1:${port}/hook?key=k`));
    expect(failure).toMatchObject({ isRetryable: true });
    expect(failure.message).toBe(
      `webhook to 127.0.0.1:${port}/hook: connection failed (ECONNREFUSED)`,
    );
  });

  test("a connection refused at each address of the name", async () => {
    const port = await closedPort();
    const failure = await failureOf(
      post(`http://hooks.example:${port}/`, { lookup: answeringLookup(loopback, loopback) }),
    );
    expect(failure).toMatchObject({
      isRetryable: true,
      message: expect.stringContaining("(ECONNREFUSED)"),
    });
  });

  test("a reset connection", async () => {
    const url = await serveRaw((socket) => socket.resetAndDestroy());
    expect(await failureOf(post(url))).toMatchObject({
      isRetryable: true,
      message: expect.stringContaining("ECONNRESET"),
    });
  });

  test("an answer that is not HTTP", async () => {
    const url = await serveRaw((socket) => socket.end("220 ready\r\n"));
    expect(await failureOf(post(url))).toMatchObject({
      isRetryable: true,
      message: expect.stringContaining("(HPE_"),
    });
  });

  test.each(["EAI_AGAIN", "ENOTFOUND"])("a name that cannot be found: %s", async (code) => {
    const lookup = () => Promise.reject(Object.assign(new Error("inside"), { code }));
    const failure = await failureOf(post("http://hooks.example/", { lookup }));
    expect(failure).toMatchObject({
      isRetryable: true,
      message: `webhook to hooks.example/: connection failed (${code})`,
    });
  });

  test("a look-up that fails without a code", async () => {
    const lookup = () => {
      throw new Error("broken");
    };
    const failure = await failureOf(post("http://hooks.example/", { lookup }));
    expect(failure).toMatchObject({
      isRetryable: true,
      message: expect.stringContaining("(no code)"),
    });
  });
});

describe("on a timeout", () => {
  const timeout = {
    isRetryable: true,
    message: expect.stringContaining("no answer within 100 ms"),
  };

  test("a look-up that never ends gets half of the time and is aborted", async () => {
    const lookup = vi.fn<NameLookup>(() => new Promise(() => {}));
    const failure = await failureOf(post("http://hooks.example/", { timeoutMs: 100, lookup }));
    const late = "webhook to hooks.example/: its name was not found within 50 ms";
    expect(failure).toMatchObject({ isRetryable: true, message: late });
    expect(lookup.mock.calls[0]?.[1].aborted).toBe(true);
  });

  test.each([
    [60_000, 5_000],
    [3_000, 1_500],
  ])(
    "of %i ms, a look-up gets %i ms and its timer is cleared afterwards",
    async (timeoutMs, lookupMs) => {
      const set = vi.spyOn(globalThis, "setTimeout");
      const cleared = vi.spyOn(globalThis, "clearTimeout");
      const url = new URL(await serve(answering(200)));
      await post(`http://hooks.example:${url.port}/`, {
        timeoutMs,
        lookup: answeringLookup(loopback),
      });
      const timer = set.mock.results[set.mock.calls.findIndex(([, ms]) => ms === lookupMs)]?.value;
      expect(timer).toBeDefined();
      expect(cleared).toHaveBeenCalledWith(timer);
    },
  );

  test("a server that never answers fails", async () => {
    expect(await failureOf(post(await serve(() => {}), { timeoutMs: 100 }))).toMatchObject(timeout);
  });

  test("a response head that never ends fails", async () => {
    const url = await serveRaw((socket) => {
      socket.write("HTTP/1.1 200 OK\r\n");
      const timer = setInterval(() => socket.write("x-more: 1\r\n"), 20);
      socket.once("close", () => clearInterval(timer));
    });
    expect(await failureOf(post(url, { timeoutMs: 100 }))).toMatchObject(timeout);
  });

  test("a body that never ends is cut: the status counts, and the connection is closed", async () => {
    let closed: Promise<unknown> | undefined;
    const url = await serve((request, response) => {
      closed = closing(request.socket);
      response.writeHead(200).write("slow");
    });
    expect(await post(url, { timeoutMs: 1_500 })).toEqual({ status: 200 });
    await closed;
  });

  test("no timer is left after an answer", async () => {
    const cleared = vi.spyOn(globalThis, "clearTimeout");
    const set = vi.spyOn(globalThis, "setTimeout");
    await post(await serve(answering(200)), { timeoutMs: 54_321 });
    const timer = set.mock.results[set.mock.calls.findIndex(([, ms]) => ms === 54_321)]?.value;
    expect(cleared).toHaveBeenCalledWith(timer);
  });
});

describe("a response body", () => {
  test("without an end is cut long before the timeout", async () => {
    let closed: Promise<unknown> | undefined;
    const url = await serve((request, response) => {
      closed = closing(request.socket);
      const more = () => {
        while (response.writable && response.write(Buffer.alloc(16_384)));
      };
      response.writeHead(503).on("drain", more);
      more();
    });
    expect(await failureOf(post(url))).toMatchObject({
      isRetryable: true,
      message: expect.stringContaining("answered with status 503"),
    });
    await closed;
  });

  test("of 64 KiB is read to its end", async () => {
    let finished: Promise<unknown> | undefined;
    const url = await serve((_, response) => {
      finished = once(response, "finish");
      response.end(Buffer.alloc(65_536));
    });
    expect(await post(url)).toEqual({ status: 200 });
    await finished;
  });

  test("that breaks off does not change the status", async () => {
    const url = await serve((request, response) => {
      response.writeHead(200, { "content-length": "100" });
      response.write("half", () => request.socket.resetAndDestroy());
    });
    expect(await post(url)).toEqual({ status: 200 });
  });
});

describe("over TLS", () => {
  const { key, certificate } = selfSigned("hooks.example");
  const serveTls = (listener: RequestListener) =>
    listen(createTlsServer({ key, cert: certificate }, listener));

  function trust(): void {
    const known = getCACertificates("default");
    setDefaultCACertificates([...known, certificate]);
    onTestFinished(() => setDefaultCACertificates(known));
  }

  test("sends a message to a server whose certificate matches the host", async () => {
    trust();
    const port = await serveTls((request, response) =>
      response.writeHead(request.method === "POST" ? 204 : 400).end(),
    );
    const lookup = answeringLookup(loopback);
    expect(await post(`https://hooks.example:${port}/`, { allowHttp: false, lookup })).toEqual({
      status: 204,
    });
  });

  test.each([
    ["that nobody vouches for", false, "hooks.example", "DEPTH_ZERO_SELF_SIGNED_CERT"],
    ["of another host", true, "other.example", "ERR_TLS_CERT_ALTNAME_INVALID"],
  ])("sends nothing to a server with a certificate %s", async (_, isTrusted, host, code) => {
    if (isTrusted) trust();
    let asked = 0;
    const port = await serveTls(() => (asked += 1));
    const failure = await failureOf(
      post(`https://${host}:${port}/`, { lookup: answeringLookup(loopback) }),
    );
    expect(failure).toMatchObject({
      isRetryable: true,
      message: expect.stringContaining(`(${code})`),
    });
    expect(asked).toBe(0);
  });
});

/** A certificate of a day for one host: X.509 in DER, as Node can read but not write it. */
function selfSigned(host: string): { key: string; certificate: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const element = (tag: number, ...parts: Uint8Array[]) => {
    const content = Buffer.concat(parts);
    const length =
      content.length < 128 ? [content.length] : [0x82, content.length >> 8, content.length & 255];
    return Buffer.concat([Buffer.from([tag, ...length]), content]);
  };
  const sequence = (...parts: Uint8Array[]) => element(0x30, ...parts);
  const time = (ms: number) =>
    element(0x18, Buffer.from(`${new Date(ms).toISOString().replace(/[-:T]|\..*/g, "")}Z`));
  const integer = (value: number) => element(0x02, Buffer.from([value]));
  const ecdsaWithSha256 = sequence(Buffer.from("06082a8648ce3d040302", "hex"));
  const commonName = sequence(
    element(0x31, sequence(Buffer.from("0603550403", "hex"), element(0x0c, Buffer.from(host)))),
  );
  const alternativeName = element(0x04, sequence(element(0x82, Buffer.from(host))));
  const body = sequence(
    element(0xa0, integer(2)),
    integer(1),
    ecdsaWithSha256,
    commonName,
    sequence(time(Date.now() - 43_200_000), time(Date.now() + 43_200_000)),
    commonName,
    publicKey.export({ type: "spki", format: "der" }),
    element(0xa3, sequence(sequence(Buffer.from("0603551d11", "hex"), alternativeName))),
  );
  const signature = createSign("sha256").update(body).sign(privateKey);
  const der = sequence(body, ecdsaWithSha256, element(0x03, Buffer.from([0]), signature));
  return {
    key: String(privateKey.export({ type: "pkcs8", format: "pem" })),
    certificate: `-----BEGIN CERTIFICATE-----\n${der.toString("base64").replace(/.{64}/g, "$&\n")}\n-----END CERTIFICATE-----\n`,
  };
}
