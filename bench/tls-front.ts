import { once } from "node:events";
import { readFileSync } from "node:fs";
import { Agent, request as forward } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";

const fixture = (name: string) =>
  fileURLToPath(new URL(`../test/fixtures/tls/localhost-${name}.pem`, import.meta.url));

/** A store behind TLS, and the variables that lead to it. */
export interface TlsFront {
  readonly env: Readonly<Record<string, string>>;
  close(): void;
}

/** Puts TLS before the store that `AWS_ENDPOINT_URL` names. */
export async function startTlsFront(env: Readonly<Record<string, string>>): Promise<TlsFront> {
  const store = new URL(env["AWS_ENDPOINT_URL"] ?? "");
  const agent = new Agent({ keepAlive: true });
  const server = createServer(
    { cert: readFileSync(fixture("cert")), key: readFileSync(fixture("key")) },
    (request, response) => {
      const { method = "POST", url = "/", headers } = request;
      const passed = forward(new URL(url, store), { method, headers, agent }, (answer) => {
        response.writeHead(Number(answer.statusCode), answer.headers);
        answer.pipe(response);
      });
      request.pipe(passed);
    },
  ).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // safe: it listens on TCP
  return {
    env: {
      ...env,
      AWS_ENDPOINT_URL: `https://localhost:${port}`,
      NODE_EXTRA_CA_CERTS: fixture("cert"),
    },
    close: () => {
      server.closeAllConnections();
      server.close();
      agent.destroy();
    },
  };
}
