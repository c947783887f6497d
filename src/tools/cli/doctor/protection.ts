import {
  type DeclaredServer,
  isolationRole,
  isolationVariable,
} from "../../../app/registry/declared-server.ts";
import { usesMessages } from "../../../app/registry/registry.ts";
import { assumption, loadSts } from "../../../aws/sessions/tenant-sessions.ts";
import type { Variables } from "../../../base/process/environment.ts";
import { proofMode } from "../../../parts/messages/proof.ts";
import {
  type Check,
  check,
  createKeyRing,
  doubtful,
  failureName,
  fine,
  unchecked,
  wrong,
} from "./outcome.ts";
import { type Place, withClient } from "./place.ts";

export function messageChecks(server: DeclaredServer): Check[] {
  return usesMessages(server.registry)
    ? [check("proof of messages", async () => proofOutcome(server))]
    : [];
}

function proofOutcome({ options, environment }: DeclaredServer) {
  // Outside production, keelson derives a key ring from the development secret.
  const hasRing = options.keyRing !== undefined || environment !== "production";
  const mode = proofMode(options.messages?.proof, hasRing);
  if (mode === "require")
    return fine("required: events and jobs not signed with the key ring are refused");
  const danger = "anyone who can write to a queue can act as any tenant";
  const wanted = 'set messages.proof of buildServer to "require"';
  if (mode === "sign")
    return doubtful(
      `signed, but not required: ${danger}; once message.proof_missing is no longer logged, ${wanted}`,
    );
  const message = `off: ${danger}; sign first, then ${wanted}`;
  return doubtful(message, ...(options.keyRing === undefined ? [createKeyRing()] : []));
}

export function isolationChecks(server: DeclaredServer, env: Variables, place: Place): Check[] {
  return [check("isolation", () => isolationOutcome(server, env, place))];
}

async function isolationOutcome(
  { options, environment }: DeclaredServer,
  env: Variables,
  place: Place,
) {
  let role: string | undefined;
  try {
    role = isolationRole(options, env, environment === "production" && !place.isEmulator);
  } catch {
    return wrong(
      `nothing names the role, so the server does not start: set isolation.role or ${isolationVariable}`,
      `export ${isolationVariable}=arn:aws:iam::<account>:role/<name>`,
    );
  }
  if (role === undefined)
    return unchecked(`${isolationVariable} is not set, so there is no wall in the account here`);
  const { AssumeRoleCommand, STSClient } = await loadSts();
  const { client, send } = withClient(place, new STSClient(place.options));
  // No tenant has this ID, so the session reaches no row.
  const session = assumption(role, { key: "tenant", value: "keelson-doctor" });
  try {
    await send(new AssumeRoleCommand({ ...session, DurationSeconds: 900 }), role);
    return fine(`${role} can be assumed, with a session tag`);
  } catch (error) {
    if (failureName(error) !== "AccessDenied") throw error;
    return unchecked(
      `these credentials may not assume ${role} with a session tag; the server's have to`,
    );
  } finally {
    client.destroy();
  }
}
