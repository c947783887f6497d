import type * as Sdk from "./dynamodb-sdk.ts";

export type DynamoDbSdk = typeof Sdk;

/**
 * Finds the module that `import("./dynamodb-sdk.ts")` loads, to load it synchronously. Searches the
 * folder of `here` for the file name that a bundler gives the module, with or without a hash.
 * Returns `undefined` unless there is exactly one such file.
 */
export function findSdk(
  here: string | undefined = import.meta.url,
): (() => DynamoDbSdk) | undefined {
  // A CommonJS bundle has no `import.meta.url`.
  const extension = /^file:.*\.([mt]?[jt]s)$/.exec(String(here))?.[1];
  if (extension === undefined) return undefined;
  const from = String(here);
  const name = new RegExp(`^dynamodb-sdk(?:[-.][\\w-]{6,12})?\\.${extension}$`);
  const found = process
    .getBuiltinModule("node:fs")
    .readdirSync(new URL(".", from))
    .filter((file) => name.test(file));
  if (found.length !== 1) return undefined;
  // Safe: only the module `dynamodb-sdk` has such a file name.
  return () =>
    process.getBuiltinModule("node:module").createRequire(from)(`./${found[0]}`) as DynamoDbSdk;
}
