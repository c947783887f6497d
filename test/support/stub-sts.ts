import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A stand-in for STS: sessions of `AssumeRole`, whose access keys contain their tags. */
export interface StubSts {
  readonly endpoint: string;
  /** Requests so far, in order. */
  readonly asked: readonly Readonly<Record<string, string>>[];
  /** Sets the answer that replaces credentials from now on. Without an argument, it returns credentials again. */
  answer(status?: number, body?: string): void;
  close(): void;
}

/** The access key of a session that a {@link StubSts} gives. */
export const accessKeyOf = (key: string, value: string) => `ASIA.${key}.${value}`;

/** Starts a {@link StubSts} on a free port. */
export async function stubSts(): Promise<StubSts> {
  const asked: Record<string, string>[] = [];
  let other: { readonly status: number; readonly body: string } | undefined;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const input = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()));
    asked.push({ ...input, authorization: String(request.headers.authorization) });
    const { status, body } = other ?? { status: 200, body: credentials(input) };
    response.writeHead(status, { "content-type": "text/xml" }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // safe: it listens on a port
  return {
    endpoint: `http://127.0.0.1:${port}`,
    asked,
    answer: (status, body) => {
      other = status === undefined ? undefined : { status, body: body ?? "" };
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function credentials(input: Readonly<Record<string, string>>): string {
  const accessKey = accessKeyOf(
    input["Tags.member.1.Key"] ?? "",
    input["Tags.member.1.Value"] ?? "",
  );
  const expiration = new Date(Date.now() + 3_600_000).toISOString();
  return `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>${accessKey}</AccessKeyId><SecretAccessKey>a secret of the session</SecretAccessKey>
<SessionToken>a token of the session</SessionToken><Expiration>${expiration}</Expiration>
</Credentials></AssumeRoleResult></AssumeRoleResponse>`;
}
