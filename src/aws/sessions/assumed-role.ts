import type { AssumeRoleCommandOutput, Credentials } from "@aws-sdk/client-sts";
import { FrameworkError } from "../../base/errors/errors.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { Clock } from "../../base/process/clock.ts";
import { lazy } from "../../base/process/lazy.ts";
import type { Database } from "../../base/types/database.ts";
import type { Isolation } from "../../parts/wall/isolation.ts";
import {
  createSessions,
  type SessionCredentials,
  type SessionTag,
  sessionSeconds,
} from "../../parts/wall/session-credentials.ts";
import { type ClientOptions, clientOptions } from "../clients/client-options.ts";
import { signAs } from "../light/signed-again.ts";

interface AssumedRoleOptions extends Pick<ClientOptions, "endpoint" | "region"> {
  readonly role: string;
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
}

export interface AssumedRole extends Isolation {
  close(): void;
}

/** Timeout of each of the SDK's three attempts. */
const attemptMs = 2_000;

/** Opens the sessions of an isolation role. The first session loads the STS SDK. */
export function openAssumedRole({
  role,
  database,
  clock,
  log,
  ...place
}: AssumedRoleOptions): AssumedRole {
  const sts = lazy(async () => {
    const { AssumeRoleCommand, STSClient } = await loadSts();
    const client = new STSClient({
      ...clientOptions(place),
      region: place.region ?? database.config.region,
      credentials: database.config.credentials,
      requestHandler: {
        connectionTimeout: attemptMs,
        requestTimeout: attemptMs,
        throwOnRequestTimeout: true,
      },
    });
    return { client, AssumeRoleCommand };
  });
  const credentialsOf = createSessions({
    clock,
    assume: async (tag) => {
      try {
        const { client, AssumeRoleCommand } = await sts.open();
        return soundCredentials(await client.send(new AssumeRoleCommand(assumption(role, tag))));
      } catch (error) {
        const message = "The tenant's data cannot be reached at the moment";
        const more = { cause: error, headers: { "retry-after": "1" } };
        throw new FrameworkError("isolation_unavailable", message, more);
      }
    },
    // Safe: `assume` throws only errors with a cause.
    onStale: (_tag, error) =>
      log.warn("tenant.session_stale", { error: String((error as Error).cause) }),
  });
  return {
    open: async (tag) => {
      const credentials = await credentialsOf(tag);
      return (request) => signAs(request, credentials);
    },
    close: () => sts.value?.client.destroy(),
  };
}

export function assumption(role: string, { key, value }: SessionTag) {
  return {
    RoleArn: role,
    RoleSessionName: `${key}-${value}`.slice(0, 64),
    DurationSeconds: sessionSeconds,
    Tags: [{ Key: key, Value: value }],
  };
}

export async function loadSts() {
  // Inside a `try`, bundlers tolerate a package that is not installed.
  try {
    return await import("@aws-sdk/client-sts");
  } catch (error) {
    throw new Error(
      "isolation: @aws-sdk/client-sts cannot be loaded; npm install @aws-sdk/client-sts",
      { cause: error },
    );
  }
}

function soundCredentials({ Credentials: given }: AssumeRoleCommandOutput): SessionCredentials {
  const {
    AccessKeyId: accessKeyId,
    SecretAccessKey: secretAccessKey,
    SessionToken: sessionToken,
  }: Partial<Credentials> = given ?? {};
  if (!accessKeyId || !secretAccessKey || !sessionToken)
    throw new Error("AssumeRole answered without credentials");
  return { accessKeyId, secretAccessKey, sessionToken };
}
