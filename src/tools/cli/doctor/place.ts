import { accountOf, endpointOf } from "../../../aws/adapters/adapters.ts";
import { clientOptions } from "../../../aws/clients/client-options.ts";
import type { Variables } from "../../../base/process/environment.ts";
import { tableMode } from "../../../hosts/container/adapters.ts";
import { CallError, command } from "./outcome.ts";

export type ServiceName = "dynamodb" | "ssm" | "sqs" | "events" | "sts";

export type Place = ReturnType<typeof placeOf>;
export type PlaceOf<Client extends object> = ReturnType<typeof withClient<Client>>;

/** Part of an SDK command that determines the response type. */
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
  given: { signal: AbortSignal; timeoutMs: number; endpoint?: string | undefined },
) {
  const variable = variableNames[service];
  const endpoint = given.endpoint ?? endpointOf(env, variable);
  // The message omits the URL, which can contain credentials.
  if (endpoint !== undefined && !(URL.canParse(endpoint) && /^https?:/.test(endpoint)))
    throw new Error(
      `the endpoint of ${service} is not a URL; set AWS_ENDPOINT_URL or AWS_ENDPOINT_URL_${variable} to http://<host>:<port>`,
    );
  // Has no credentials.
  const shown =
    endpoint === undefined ? `AWS's own endpoint of ${service}` : shownAddress(endpoint);
  // An emulator may not support every feature.
  const isEmulator = endpoint !== undefined && tableMode(endpoint) === "create";
  return {
    shown,
    isEmulator,
    options: {
      ...clientOptions({ endpoint, ...accountOf(env) }),
      maxAttempts: 2,
      requestHandler: { connectionTimeout: given.timeoutMs },
    },
    signal: given.signal,
    /** @throws CallError */
    call: async <Answer>(operation: string, resource: string, send: () => Promise<Answer>) => {
      try {
        return await send();
      } catch (error) {
        throw new CallError({ service, operation, resource, shown, isEmulator }, error);
      }
    },
    /** Formats `aws <service> <action> --<name> <value>`, without undefined options. */
    aws: (action: string, options: AwsOptions) => {
      const all = { ...options, "endpoint-url": endpoint === undefined ? undefined : shown };
      return command("aws", service, ...action.split(" "), ...Object.entries(all).flatMap(words));
    },
  };
}

export function withClient<Client extends object>(place: Place, client: Client) {
  // Safe cast: an SDK client sends its own commands and resolves to their output.
  const sdk = client as unknown as {
    send<Output>(command: Command<Output>, until: { abortSignal: AbortSignal }): Promise<Output>;
  };
  return {
    ...place,
    client,
    /** @throws CallError */
    send: <Output>(command: Command<Output>, resource: string) =>
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
