import type * as Sdk from "./dynamodb-sdk.ts";

/** The module of `dynamodb-sdk.ts`. */
export type DynamoDbSdk = typeof Sdk;

/**
 * Finds what `import("./dynamodb-sdk.ts")` loads, for whoever cannot wait for it.
 *
 * @returns what loads it at once; `undefined` where a bundler has put it into a file of another name.
 */
export function findSdk(here: string = import.meta.url ?? ""): (() => DynamoDbSdk) | undefined {
  const extension = /\.[jmt]+s$/.exec(here)?.[0];
  if (extension === undefined) return undefined;
  const name = `./dynamodb-sdk${extension}`;
  if (!process.getBuiltinModule("node:fs").existsSync(new URL(name, here))) return undefined;
  // Safe: it is that module.
  return () => process.getBuiltinModule("node:module").createRequire(here)(name) as DynamoDbSdk;
}
