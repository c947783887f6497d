import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";

const types: Readonly<Record<string, string>> = {
  ".css": "text/css",
  ".html": "text/html",
  ".js": "text/javascript",
  ".json": "application/json",
  ".svg": "image/svg+xml",
};

/** Serves the files of a folder below a path, such as `/keelson/`, as GitHub Pages does. */
export async function serveFolder(
  folder: string,
  base: string,
): Promise<{ server: Server; origin: string }> {
  const server = createServer(({ url = "/" }, response) => {
    const { pathname } = new URL(url, "http://localhost");
    const file = pathname.endsWith("/") ? `${pathname}index.html` : pathname;
    const path = join(folder, normalize(file.slice(base.length - 1)));
    const isThere = file.startsWith(base) && existsSync(path) && statSync(path).isFile();
    response.writeHead(isThere ? 200 : 404, {
      "content-type": types[extname(path)] ?? "application/octet-stream",
    });
    if (isThere) createReadStream(path).pipe(response);
    else response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // safe: it listens on a port
  return { server, origin: `http://127.0.0.1:${port}` };
}
