import type * as Sdk from "./dynamodb-sdk.ts";

/** The module of `dynamodb-sdk.ts`. */
export type DynamoDbSdk = typeof Sdk;

/**
 * Finds what `import("./dynamodb-sdk.ts")` loads, for whoever cannot wait for it: beside the file that asks, by the name that
 * bundlers make of the module's, with a hash or without.
 *
 * @returns what loads it at once; `undefined` where there is no such file, or more than one.
 */
export function findSdk(
  here: string | undefined = import.meta.url,
): (() => DynamoDbSdk) | undefined {
  // A bundle in CommonJS has no URL.
  const extension = /^file:.*\.([mt]?[jt]s)$/.exec(String(here))?.[1];
  if (extension === undefined) return undefined;
  const from = String(here);
  const name = new RegExp(`^dynamodb-sdk(?:[-.][\\w-]{6,12})?\\.${extension}$`);
  const found = process
    .getBuiltinModule("node:fs")
    .readdirSync(new URL(".", from))
    .filter((file) => name.test(file));
  if (found.length !== 1) return undefined;
  // Safe: it is that module.
  return () =>
    process.getBuiltinModule("node:module").createRequire(from)(`./${found[0]}`) as DynamoDbSdk;
}
