import { buildServer, type Feature } from "keelson";
import { startTestApp } from "keelson/testing";
import { afterAll, expect, test, vi } from "vitest";
import { nameOf, writeBlocks } from "./compile.ts";
import { allBlocks } from "./markdown.ts";

// The recipe for large files of docs/uploads.md, as its readers copy it.

const written = writeBlocks(
  allBlocks().filter(
    (block) => block.document === "docs/uploads.md" && nameOf(block) === "videos.ts",
  ),
);
afterAll(() => written.remove());

test("the signed URL is for the caller's tenant, and covers length, type and checksum", async () => {
  vi.stubEnv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "example");
  vi.stubEnv("AWS_REGION", "eu-central-1");
  const [file] = written.files;
  const { videos }: { videos: Feature } = await import(/* @vite-ignore */ String(file?.path));
  const app = await startTestApp(buildServer({ features: [videos] }));
  try {
    const begin = async (tenantId: string, headers = {}) => {
      const sha256 = "n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=";
      const body = { bytes: 4, type: "video/mp4", sha256 };
      const as = { id: "ann", tenantId, roles: [] };
      const response = await app.fetch("/videos", { body, headers, as });
      // Safe cast: the recipe answers with these.
      return (await response.json()) as { id: string; url: string; headers: object };
    };
    const { id, url, headers } = await begin("acme/../globex");
    const { pathname, searchParams } = new URL(url);
    expect(pathname).toBe(`/tenants/acme%252F..%252Fglobex/uploads/${id}`);
    expect(searchParams.get("X-Amz-SignedHeaders")?.split(";")).toEqual(
      ["content-length", "host", ...Object.keys(headers)].sort(),
    );
    expect(searchParams.get("X-Amz-Expires")).toBe("300");

    const key = { "idempotency-key": "k1" };
    expect(await begin("acme", key)).toEqual(await begin("acme", key));
  } finally {
    await app.close();
    vi.unstubAllEnvs();
  }
});
