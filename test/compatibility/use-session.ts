import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, vi } from "vitest";
import { keptServer, keyRings } from "./features.ts";
import { beginSession, type Session, usual } from "./session.ts";
import type { Version } from "./version.ts";
import { createWorld } from "./world.ts";

/** A session for the tests of a file, or of a `describe`, on a stack of the current version; it exists once the first test starts. */
export function useSession(current: Version): () => Session {
  let app: TestApp;
  let session: Session;
  beforeAll(async () => {
    app = await startTestApp(keptServer(current, createWorld(), usual), {
      secureParameters: { "/kept/earlier": keyRings.earlier, "/kept/rotated": keyRings.rotated },
    });
    await app.settled(); // makes the queues
    session = beginSession(app.env);
    vi.spyOn(process.stdout, "write").mockReturnValue(true); // the hosts' logs
    vi.spyOn(console, "warn").mockReturnValue(undefined); // Powertools' own layer asks for a Lambda context
  });
  afterAll(async () => {
    vi.restoreAllMocks();
    session.close();
    await app.close();
  });
  return () => session;
}
