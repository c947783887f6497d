import type { Database } from "../../base/types/database.ts";
import { attemptsWithin, type ClientOptions, clientOptions, isEmulator } from "./client-options.ts";

type DynamoDbSdk = typeof import("./dynamodb-sdk.ts");

export interface DatabaseOptions extends ClientOptions {
  /** Timeout of one attempt of a call, in milliseconds. Default 5,000; 30,000 for an emulator. */
  readonly attemptMs?: number;
}

export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  return createDatabase(await import("./dynamodb-sdk.ts"), options);
}

export function createDatabase(
  { DynamoDBClient, DynamoDBDocumentClient }: DynamoDbSdk,
  options: DatabaseOptions,
): Database {
  const { endpoint } = options;
  const { attemptMs = endpoint !== undefined && isEmulator(endpoint) ? 30_000 : 5_000 } = options;
  const client = new DynamoDBClient({
    ...clientOptions(options),
    // By default, the SDK waits for minutes on a connection that has died without a word.
    requestHandler: attemptsWithin(attemptMs),
  });
  options.measure?.(client);
  return DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
}

/** Closes the client's connections, which `destroy` of a document client leaves open. */
export function closeDatabase({ config }: Database): void {
  config.requestHandler.destroy?.();
}

/**
 * Finds the module of `import("./dynamodb-sdk.ts")`, to load it synchronously, under the name that
 * a bundler gives it, with or without a hash. `undefined` unless there is exactly one such file.
 */
export function findSdk(here = String(import.meta.url)): (() => DynamoDbSdk) | undefined {
  // A CommonJS bundle has no `import.meta.url`.
  const extension = /^file:.*\.([mt]?[jt]s)$/.exec(here)?.[1];
  if (extension === undefined) return undefined;
  const name = new RegExp(`^dynamodb-sdk(?:[-.][\\w-]{6,12})?\\.${extension}$`);
  const found = process
    .getBuiltinModule("node:fs")
    .readdirSync(new URL(".", here))
    .filter((file) => name.test(file));
  if (found.length !== 1) return undefined;
  // Safe: only the module `dynamodb-sdk` has such a file name.
  return () =>
    process.getBuiltinModule("node:module").createRequire(here)(`./${found[0]}`) as DynamoDbSdk;
}
