import { accountOf, endpointOf } from "../../../aws/adapters/adapters.ts";
import { clientOptions } from "../../../aws/clients/client-options.ts";
import type { Variables } from "../../../base/process/environment.ts";
import { tableMode } from "../../../hosts/container/adapters.ts";
import { CallError } from "./call-error.ts";
import { command } from "./command-line.ts";

/** A service of AWS, as its command line calls it. */
export type ServiceName = "dynamodb" | "ssm" | "sqs" | "events" | "sts";

/** Where a service is, and how it is asked. */
export interface Place {
  readonly service: ServiceName;
  /** For people; without what an address may have of credentials. */
  readonly shown: string;
  /** What lacks something may be an emulator's own lack. */
  readonly isEmulator: boolean;
  /** What a client of the SDK is made with. */
  readonly options: ReturnType<typeof clientOptions> & {
    readonly maxAttempts: number;
    readonly requestHandler: { readonly connectionTimeout: number };
  };
  /** Ends every call when the time is over. */
  readonly signal: AbortSignal;
  /** @throws CallError, which says what was asked. */
  call<Answer>(operation: string, resource: string, send: () => Promise<Answer>): Promise<Answer>;
  /** A command of AWS's command line for this place: `aws sqs <words>`. */
  aws(...words: readonly string[]): string;
}

const variableNames = {
  dynamodb: "DYNAMODB",
  ssm: "SSM",
  sqs: "SQS",
  events: "EVENTBRIDGE",
  sts: "STS",
} as const;

/**
 * Where a service is that the environment, or the server itself, names.
 *
 * @throws Error where what is named is no URL.
 */
export function placeOf(
  service: ServiceName,
  env: Variables,
  given: {
    readonly signal: AbortSignal;
    readonly timeoutMs: number;
    readonly endpoint?: string | undefined;
  },
): Place {
  const endpoint = given.endpoint ?? endpointOf(env, variableNames[service]);
  if (endpoint !== undefined && !(URL.canParse(endpoint) && /^https?:/.test(endpoint))) {
    // Not shown: a URL may hold credentials.
    const variable = `AWS_ENDPOINT_URL_${variableNames[service]}`;
    throw new Error(
      `the endpoint of ${service} is no URL; set AWS_ENDPOINT_URL or ${variable} to http://<host>:<port>`,
    );
  }
  const shown =
    endpoint === undefined ? `AWS's own endpoint of ${service}` : shownAddress(endpoint);
  const isEmulator = endpoint !== undefined && tableMode(endpoint) === "create";
  return {
    service,
    shown,
    isEmulator,
    options: {
      ...clientOptions({ endpoint, ...accountOf(env) }),
      maxAttempts: 2,
      requestHandler: { connectionTimeout: given.timeoutMs },
    },
    signal: given.signal,
    call: async (operation, resource, send) => {
      try {
        return await send();
      } catch (error) {
        throw new CallError({ service, operation, resource, shown, isEmulator }, error);
      }
    },
    aws: (...words) =>
      command(
        "aws",
        service,
        ...words,
        ...(endpoint === undefined ? [] : ["--endpoint-url", shown]),
      ),
  };
}

function shownAddress(endpoint: string): string {
  const url = new URL(endpoint);
  return `${url.protocol}//${url.host}${url.pathname === "/" ? "" : url.pathname}`;
}
