import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { IamRequest } from "./iam-requests.ts";

/** A policy, as IAM has it. */
export interface Policy {
  readonly Version: string;
  readonly Statement: readonly Readonly<Record<string, unknown>>[];
}

/** The caller, and facts about it. */
export interface Principal {
  readonly arn: string;
  /** `{ tenant: "acme" }` of a session. */
  readonly tags?: Readonly<Record<string, string>>;
}

/** Whether IAM allows a request. */
export type Simulator = (
  request: IamRequest,
  by: Principal,
  policies: { readonly identity?: Policy | undefined; readonly resource?: Policy | undefined },
) => Promise<boolean>;

export const account = "123456789012";

const root = join(import.meta.dirname, "../..");

interface Simulate {
  runSimulation(
    simulation: object,
    options: object,
  ): Promise<{
    readonly resultType: string;
    readonly errors?: { readonly message: string };
    readonly overallResult?: string;
  }>;
}

/** Installs the simulator, which is a separate package, and loads it. */
export async function loadSimulator(): Promise<Simulator> {
  // Safe: so it is declared in scripts/install.mjs, which has no types.
  const { installPackage } = (await import(
    pathToFileURL(join(root, "scripts/install.mjs")).href
  )) as {
    installPackage(folder: string, say: (line: string) => void): void;
  };
  installPackage("test/iam", (line) => console.log(`iam: ${line}`));
  const module = join(
    import.meta.dirname,
    "node_modules/@cloud-copilot/iam-simulate/dist/esm/index.js",
  );
  const { runSimulation } = (await import(
    /* @vite-ignore */ pathToFileURL(module).href
  )) as Simulate; // safe: the used part of its own type
  return async (
    { action, resource, context },
    { arn, tags = {} },
    { identity, resource: resourcePolicy },
  ) => {
    const tagged = Object.entries(tags).map(([name, value]) => [`aws:PrincipalTag/${name}`, value]);
    const result = await runSimulation(
      {
        request: {
          action,
          principal: arn,
          resource: { accountId: account, resource },
          contextVariables: { "aws:PrincipalArn": arn, ...Object.fromEntries(tagged), ...context },
        },
        identityPolicies: identity === undefined ? [] : [{ name: "own", policy: identity }],
        ...(resourcePolicy === undefined ? {} : { resourcePolicy }),
        serviceControlPolicies: [],
        resourceControlPolicies: [],
      },
      {},
    );
    if (result.errors !== undefined)
      throw new Error(`${action} on ${resource}: ${JSON.stringify(result.errors)}`);
    return result.overallResult === "Allowed";
  };
}
