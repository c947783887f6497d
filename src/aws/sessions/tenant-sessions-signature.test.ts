import { DynamoDBClient, GetItemCommand } from "@aws-sdk/client-dynamodb";
import { expect, test } from "vitest";
import { signAs } from "./tenant-sessions.ts";

const [own, session] = [
  { accessKeyId: "AKIA", secretAccessKey: "own", sessionToken: "own token" },
  { accessKeyId: "ASIA", secretAccessKey: "session", sessionToken: "session token" },
];

interface Sent {
  readonly headers: Record<string, string>;
  readonly body: string | Uint8Array;
  readonly path: string;
}

/** The request that a client sends, signed with `credentials` at a time of its own. */
async function sentBy(
  credentials: typeof own,
  before?: Readonly<Record<string, string>>,
): Promise<Sent> {
  let sent: Sent | undefined;
  const client = new DynamoDBClient({
    region: "eu-west-1",
    credentials,
    requestHandler: {
      handle: async (request: Sent) => {
        sent = request;
        return { response: { statusCode: 200, headers: {}, body: new TextEncoder().encode("{}") } };
      },
    } as never, // all that the SDK asks of one
  });
  if (before !== undefined) {
    // Each request has its own: this one gets that of another, right before it is signed.
    const take =
      (next: (given: { readonly request: Sent }) => unknown) =>
      (given: { readonly request: Sent }) => {
        given.request.headers["amz-sdk-invocation-id"] = before["amz-sdk-invocation-id"] ?? "";
        return next(given);
      };
    // Safe: a middleware takes the next one; its type is a union of those of five steps.
    client.middlewareStack.addRelativeTo(take as never, {
      relation: "before",
      toMiddleware: "httpSigningMiddleware",
    });
  }
  await client.send(new GetItemCommand({ TableName: "t", Key: { pk: { S: "acme/ä" } } }));
  return sent as Sent; // safe: it has been
}

test("signs a request again as the SDK would with the other credentials", async () => {
  for (;;) {
    const request = await sentBy(own);
    const wanted = await sentBy(session, request.headers);
    // In the same second.
    if (request.headers["x-amz-date"] !== wanted.headers["x-amz-date"]) continue;
    expect(request.headers["authorization"]).toContain("Credential=AKIA/");
    const { headers } = request;
    signAs(request, session);
    expect(request.headers).toEqual(wanted.headers);
    expect(headers["authorization"]).toContain("Credential=AKIA/"); // what was there is left as it was
    return;
  }
});

test("signs a text body as its bytes", async () => {
  const request = await sentBy(own);
  const text = { ...request, body: new TextDecoder().decode(request.body as Uint8Array) };
  signAs(request, session);
  signAs(text, session);
  expect(text.headers).toEqual(request.headers);
});

test.each<[string, (sent: Sent) => object]>([
  [
    "not at all",
    ({ headers: { authorization: _, ...headers }, ...sent }) => ({ ...sent, headers }),
  ],
  [
    "for several Regions",
    (sent) => ({
      ...sent,
      headers: { ...sent.headers, authorization: "AWS4-ECDSA-P256-SHA256 Credential=a/b" },
    }),
  ],
  ["by a token", (sent) => ({ ...sent, headers: { ...sent.headers, authorization: "Bearer x" } })],
  ["without a time", (sent) => ({ ...sent, headers: { ...sent.headers, "x-amz-date": "now" } })],
  [
    "without any time",
    ({ headers: { "x-amz-date": _, ...headers }, ...sent }) => ({ ...sent, headers }),
  ],
  ["for another path", (sent) => ({ ...sent, path: "/base/" })],
])("rejects a request that is signed %s, so that it is not sent", async (_, change) => {
  const request = change(await sentBy(own));
  expect(() => signAs(request, session)).toThrow("it was not sent");
});

test("signs a missing header as an empty one", async () => {
  const request = await sentBy(own);
  const { "x-amz-target": _, ...headers } = request.headers;
  const without = { ...request, headers };
  signAs(without, session);
  expect(without.headers["authorization"]).toContain("x-amz-target");
});
