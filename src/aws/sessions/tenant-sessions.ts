import type { AssumeRoleCommandOutput, Credentials } from "@aws-sdk/client-sts";
import { isolationRole } from "../../app/registry/declared-server.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { FrameworkError } from "../../base/errors/errors.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { Variables } from "../../base/process/environment.ts";
import { lazy } from "../../base/process/lazy.ts";
import { eventFunctionName } from "../../base/process/platform.ts";
import type { Database } from "../../base/types/database.ts";
import type { Isolation } from "../../parts/wall/isolation.ts";
import {
  createSessions,
  type SessionCredentials,
  type SessionTag,
  sessionSeconds,
} from "../../parts/wall/session-credentials.ts";
import { attemptsWithin, type ClientOptions, clientOptions } from "../clients/client-options.ts";
import { type SigningCredentials, signedHeaders } from "../light/signature.ts";

interface TenantSessionsOptions
  extends Pick<AssumedRoleOptions, "endpoint" | "region" | "database"> {
  readonly variables: Variables;
  /** Whether the tables belong to a deployment, unlike an emulator's. */
  readonly isChecked: boolean;
}

/**
 * Returns `undefined` without an isolation role: the process's own credentials reach tenants' rows.
 * @throws Error if production has no isolation role. In an event function, opening a session throws it
 * instead, because a function that does not read tenants' rows works without a role.
 */
export function openTenantSessions(
  { server, environment, clock, log }: Pick<Runtime, "server" | "environment" | "clock" | "log">,
  { variables, isChecked, ...place }: TenantSessionsOptions,
): AssumedRole | undefined {
  try {
    const isRequired = isChecked && environment === "production";
    const role = isolationRole(server.options, variables, isRequired);
    return role === undefined ? undefined : openAssumedRole({ ...place, role, clock, log });
  } catch (error) {
    if (eventFunctionName(variables) === undefined) throw error;
    return { open: () => Promise.reject(error), close: () => undefined };
  }
}

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

/** The first session loads the STS SDK. */
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
      requestHandler: attemptsWithin(attemptMs),
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

interface SignedRequest {
  readonly path: string;
  readonly body: string | Uint8Array;
  headers: Readonly<Record<string, string>>;
}

const ofSignature = ["authorization", "x-amz-date", "x-amz-security-token"];

/** Replaces the SDK's signature of a request. @throws Error if its form is unknown. */
export function signAs(request: unknown, credentials: SigningCredentials): void {
  const signed = request as SignedRequest; // safe: missing members are detected below
  const { headers, body, path } = signed;
  const [, region, service, list] = scheme.exec(headers["authorization"] ?? "") ?? [];
  const sentMs = Date.parse(
    (headers["x-amz-date"] ?? "").replace(/^(\d{4})(\d\d)(\d\dT\d\d)(\d\d)/, "$1-$2-$3:$4:"),
  );
  if (
    region === undefined ||
    service === undefined ||
    list === undefined ||
    Number.isNaN(sentMs) ||
    path !== "/"
  ) {
    throw new Error(
      "isolation: the SDK has signed a request in a way that keelson does not know; it was not sent",
    );
  }
  const names = list.split(";").filter((name) => !ofSignature.includes(name));
  const own = Object.fromEntries(names.map((name) => [name, headers[name] ?? ""]));
  signed.headers = {
    ...headers,
    ...signedHeaders({ headers: own, body, region, service }, credentials, sentMs),
  };
}

const scheme =
  /^AWS4-HMAC-SHA256 Credential=[^/]+\/\d{8}\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), /;
