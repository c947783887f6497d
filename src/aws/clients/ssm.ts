import type { Parameter } from "@aws-sdk/client-ssm";
import type { ParameterReader } from "../../app/runtime/adapters.ts";
import type { ConfigParameter } from "../../parts/config/declare/parameter-overrides.ts";
import { attemptsWithin, type ClientOptions, clientOptions } from "./client-options.ts";

export interface SsmOptions extends ClientOptions {
  /** Timeout of one attempt of a call, in milliseconds. Default 2,000. */
  readonly attemptMs?: number;
  /** Timeout of the whole read, including retries and pages, in milliseconds. Default 10,000. */
  readonly totalMs?: number;
}

/**
 * An account has 40 calls per second, and a deployment starts many processes together. The SDK's
 * three attempts end after a second on average.
 */
const maxAttempts = 6;

export async function openParameters(options: SsmOptions): Promise<ParameterReader> {
  const { attemptMs = 2_000, totalMs = 10_000 } = options;
  const { GetParameterCommand, paginateGetParametersByPath, SSMClient } = await import(
    "./ssm-sdk.ts"
  );
  const client = new SSMClient({
    ...clientOptions(options),
    requestHandler: attemptsWithin(attemptMs),
    maxAttempts,
  });
  const unreadable = (what: string, timeout: AbortSignal, error: unknown) => {
    // Safe: the SDK throws only errors.
    const reason = timeout.aborted
      ? `no complete answer within ${totalMs} ms`
      : `${(error as Error).name} after the SDK's retries`;
    return new Error(`${what} cannot be read: ${reason}`, { cause: error });
  };
  return {
    read: async (path) => {
      const timeout = AbortSignal.timeout(totalMs);
      const pages = paginateGetParametersByPath(
        { client, pageSize: 10 },
        { Path: path, Recursive: true, WithDecryption: true },
        { abortSignal: timeout },
      );
      const all = async () => {
        const found: ConfigParameter[] = [];
        for await (const { Parameters } of pages) {
          timeout.throwIfAborted();
          found.push(...(Parameters ?? []).map(parameterOf));
        }
        return found;
      };
      try {
        return await before(timeout, all());
      } catch (error) {
        throw unreadable(`SSM parameters below ${path}`, timeout, error);
      }
    },
    get: async (name) => {
      const timeout = AbortSignal.timeout(totalMs);
      const command = new GetParameterCommand({ Name: name, WithDecryption: true });
      try {
        const sent = client.send(command, { abortSignal: timeout });
        const { Parameter } = await before(timeout, sent);
        return Parameter && parameterOf(Parameter);
      } catch (error) {
        if (error instanceof Error && error.name === "ParameterNotFound") return undefined;
        throw unreadable(`The SSM parameter ${name}`, timeout, error);
      }
    },
    middlewareStack: client.middlewareStack,
    close: () => client.destroy(),
  };
}

/** The SDK does not abort its pauses between attempts, which take up to 16 s. */
function before<Value>(timeout: AbortSignal, call: Promise<Value>): Promise<Value> {
  const { promise, reject } = Promise.withResolvers<never>();
  timeout.addEventListener("abort", () => reject(timeout.reason), { once: true });
  return Promise.race([call, promise]);
}

function parameterOf({ Name, Value, Type }: Parameter): ConfigParameter {
  if (typeof Name !== "string" || typeof Value !== "string")
    throw new TypeError("SSM answered a parameter without name or value");
  return { name: Name, value: Value, secure: Type === "SecureString" };
}
