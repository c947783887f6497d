import { type DeclaredServer, isolationRole, isolationVariable } from "../../../app/registry/declared-server.ts";
import { assumption, loadSts } from "../../../aws/sessions/tenant-sessions.ts";
import type { Variables } from "../../../base/process/environment.ts";
import { failureName } from "./call-error.ts";
import { type Check, fine, type Outcome, unchecked, wrong } from "./outcome.ts";
import { type Place, withClient } from "./place.ts";

/** Tenant that does not exist, so its session reaches no row. */
const madeUp = { key: "tenant", value: "keelson-doctor" } as const;

export function isolationChecks(server: DeclaredServer, env: Variables, place: Place): Check[] {
  return [{ name: "isolation", run: () => outcome(server, env, place) }];
}

async function outcome(
  { options, environment }: DeclaredServer,
  env: Variables,
  place: Place,
): Promise<Outcome> {
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
  try {
    const command = new AssumeRoleCommand({ ...assumption(role, madeUp), DurationSeconds: 900 });
    await send(command, role);
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
