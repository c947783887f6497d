import { accountOf, endpointOf } from "../../../aws/adapters/adapters.ts";
import { clientOptions } from "../../../aws/clients/client-options.ts";
import type { Variables } from "../../../base/process/environment.ts";
import { tableMode } from "../../../hosts/container/adapters.ts";
import { CallError, command } from "./outcome.ts";

export type ServiceName = "dynamodb" | "ssm" | "sqs" | "events" | "sts";

export interface Place {
  readonly service: ServiceName;
  /** Endpoint without credentials. */
  readonly shown: string;
  /** Whether the endpoint is an emulator, which may not support every feature. */
  readonly isEmulator: boolean;
  readonly options: ReturnType<typeof clientOptions> & {
    readonly maxAttempts: number;
    readonly requestHandler: { readonly connectionTimeout: number };
  };
  call<Answer>(operation: string, resource: string, send: () => Promise<Answer>): Promise<Answer>;
  readonly signal: AbortSignal;
  /**
   * Formats `aws <service> <action> --<name> <value>` for this endpoint, without undefined options.
   */
  aws(action: string, options: AwsOptions): string;
}

export interface PlaceOf<Client> extends Place {
  readonly client: Client;
  /** @throws CallError with the call that failed. */
  send<Output>(command: Command<Output>, resource: string): Promise<Output>;
}

/** The part of an SDK command that determines the type of its response. */
interface Command<Output> {
  resolveMiddleware(...given: never[]): (input: never) => Promise<{ readonly output: Output }>;
}

type AwsOptions = Readonly<Record<string, string | readonly string[] | true | undefined>>;

const variableNames = {
  dynamodb: "DYNAMODB",
  ssm: "SSM",
  sqs: "SQS",
  events: "EVENTBRIDGE",
  sts: "STS",
} as const;

export function placeOf(
  service: ServiceName,
  env: Variables,
  {
    signal,
    timeoutMs,
    ...given
  }: Pick<Place, "signal"> & {
    readonly timeoutMs: number;
    readonly endpoint?: string | undefined;
  },
): Place {
  const variable = variableNames[service];
  const endpoint = given.endpoint ?? endpointOf(env, variable);
  // The message omits the URL, which can contain credentials.
  if (endpoint !== undefined && !(URL.canParse(endpoint) && /^https?:/.test(endpoint)))
    throw new Error(
      `the endpoint of ${service} is no URL; set AWS_ENDPOINT_URL or AWS_ENDPOINT_URL_${variable} to http://<host>:<port>`,
    );
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
      requestHandler: { connectionTimeout: timeoutMs },
    },
    signal,
    call: async (operation, resource, send) => {
      try {
        return await send();
      } catch (error) {
        throw new CallError({ service, operation, resource, shown, isEmulator }, error);
      }
    },
    aws: (action, options) => {
      const all = { ...options, "endpoint-url": endpoint === undefined ? undefined : shown };
      return command("aws", service, ...action.split(" "), ...Object.entries(all).flatMap(words));
    },
  };
}

export function withClient<Client extends object>(place: Place, client: Client): PlaceOf<Client> {
  // Safe cast: an SDK client sends its own commands and resolves to their output.
  const sdk = client as unknown as {
    send<Output>(command: Command<Output>, until: { abortSignal: AbortSignal }): Promise<Output>;
  };
  return {
    ...place,
    client,
    send: (command, resource) =>
      place.call(command.constructor.name.replace(/Command$/, ""), resource, () =>
        sdk.send(command, { abortSignal: place.signal }),
      ),
  };
}

function words([name, value]: readonly [string, AwsOptions[string]]) {
  if (value === undefined) return [];
  return [`--${name}`, ...(value === true ? [] : [value].flat())];
}

function shownAddress(endpoint: string) {
  const url = new URL(endpoint);
  return `${url.protocol}//${url.host}${url.pathname === "/" ? "" : url.pathname}`;
}
