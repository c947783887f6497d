import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { namePrefix } from "../../src/tools/infra/parameters.ts";

declare module "vitest" {
  interface ProvidedContext {
    deployed: Deployed;
  }
}

const run = promisify(execFile);

/** The root of the repository. */
export const root = join(import.meta.dirname, "../..");

/** A resource of a template. Its properties are looked at one by one. */
export interface Resource {
  readonly Type: string;
  readonly DeletionPolicy?: string;
  readonly Properties: Readonly<Record<string, unknown>>;
}

/** Results of `localstack.setup.mjs` for all tests. */
export interface Deployed {
  readonly endpoint: string;
  /** Prefix of the stack's names. */
  readonly prefix: string;
  /** Variables of the functions, and of LocalStack. */
  readonly variables: Readonly<Record<string, string>>;
  /** The packaged ones, those that LocalStack lacks included. */
  readonly resources: Readonly<Record<string, Resource>>;
  /** Folder of the unpacked archive. */
  readonly task: string;
  /** Lambda's emulator, a program. */
  readonly emulator: string;
  /** Lambda's runtime, a module. */
  readonly runtime: string;
  /** The server of MiniStack, a program. */
  readonly miniStack: string;
  /** Folder of the program `aws`. */
  readonly awsCli: string;
}

/** Result of `npm run package`. */
export interface Package {
  readonly parameters: Readonly<Record<string, { readonly Default?: string | number }>>;
  readonly resources: Readonly<Record<string, Resource>>;
  /** The names of the files in the archive, and whatever else stands there as text. */
  readonly archive: string;
  /** Its output. */
  readonly printed: string;
}

/** Packages the sample as `npm run package -- <args>` does. */
export async function packaged(...args: readonly string[]): Promise<Package> {
  const directory = mkdtempSync(join(tmpdir(), "keelson-package-"));
  const { stdout } = await run(
    process.execPath,
    ["scripts/package.mjs", "--package", directory, ...args],
    {
      cwd: root,
      env: withoutAccount(),
    },
  );
  const [template = ""] = readdirSync(directory).filter((name) => name.endsWith(".json"));
  // Safe: `keelson infra` has written a template.
  const { Parameters: parameters, Resources: resources } = JSON.parse(
    readFileSync(join(directory, template), "utf8"),
  ) as {
    Parameters: Package["parameters"];
    Resources: Package["resources"];
  };
  return {
    parameters,
    resources,
    archive: readFileSync(join(directory, "code.zip"), "latin1"),
    printed: stdout,
  };
}

/** The resources of a type, by their logical names. */
export function ofType({ resources }: Package, type: string): [name: string, resource: Resource][] {
  return Object.entries(resources).filter(([, resource]) => resource.Type === type);
}

/** The name of a table, a queue or a bus. Names in a template of `keelson infra` start with a parameter. */
export function nameOf({ Properties }: Resource, prefix: string): string {
  const name = Properties["TableName"] ?? Properties["QueueName"] ?? Properties["Name"];
  const { "Fn::Sub": text = "" } = name as { readonly "Fn::Sub"?: string }; // safe: they all are, and the rest fails the test
  return text.replace(namePrefix, prefix);
}

/** An environment without credentials, endpoint or region, which packaging does not need. */
function withoutAccount(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith("AWS_")),
  );
}
