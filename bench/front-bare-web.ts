// The same answers by `node:http` alone, which closes at once on SIGTERM.
import { createServer } from "node:http";

const chunkMs = 20;
const server = createServer(async ({ url: path = "" }, response) => {
  if (path !== "/stream") {
    const body = JSON.stringify({ path });
    response.writeHead(200, {
      "content-type": "application/json; charset=utf-8",
      "content-length": String(body.length),
    });
    response.end(body);
    return;
  }
  response.writeHead(200, { "content-type": "text/plain" });
  for (let n = 0; n < 5; n++) {
    if (n > 0) await new Promise((resolve) => setTimeout(resolve, chunkMs));
    response.write(`${n}\n`);
  }
  response.end();
});
const [host, port] = (process.env["AWS_LAMBDA_HTTP_ENDPOINT"] ?? "").split(":");
server.listen(Number(port), host);
process.once("SIGTERM", () => server.close());
