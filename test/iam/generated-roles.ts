import { beforeAll, describe, expect, test } from "vitest";
import { server as sample } from "../../examples/files/server.ts";
import { serverInternals } from "../../src/app/server/server.ts";
import { serverTemplate } from "../../src/tools/infra/server-template.ts";
import { tablesArn } from "./iam-requests.ts";
import { type RecordedCall, requestsOf } from "./recorded-requests.ts";
import { type Resources, roleOf } from "./resolved.ts";
import { account, loadSimulator, type Policy, type Simulator } from "./simulator.ts";

/** Calls of the sample's functions, and their resources. */
export interface Recorded {
  /** The calls of a function, by the name that the sample gives it. */
  callsOf(name: string): readonly RecordedCall[];
  /** Prefix of names. */
  readonly prefix: string;
  /** The path of its parameters. */
  readonly parameters: string;
}

/** Asks IAM, as a simulator has it, for the same calls, of the roles that `keelson infra` makes for the sample. */
export function describeGeneratedRoles(recorded: Recorded): void {
  const { callsOf, prefix } = recorded;
  describe.each([
    ["", undefined],
    [", of a server that is isolated,", {}],
  ])("the generated role%s", (_, isolation) => {
    const roles = {
      one: generatedRoles(recorded, "one", isolation),
      each: generatedRoles(recorded, "each", isolation),
    };
    let simulate: Simulator;
    beforeAll(async () => {
      simulate = await loadSimulator();
    });

    const functions: readonly [string, keyof typeof roles, readonly string[]][] = [
      ["FilesFileCreate", "each", ["filesFileCreate"]],
      ["FilesFileList", "each", ["filesFileList"]],
      ["FilesFileShow", "each", ["filesFileShow"]],
      ["FilesFileQuota", "each", ["filesFileQuota"]],
      ["FilesFileDownloadUrl", "each", ["filesFileDownloadUrl"]],
      ["FilesFileDelete", "each", ["filesFileDelete"]],
      ["Http", "each", ["operate"]],
      [
        "Http",
        "one",
        [
          "http",
          "filesFileCreate",
          "filesFileList",
          "filesFileQuota",
          "filesFileShow",
          "filesFileDownloadUrl",
          "filesFileDelete",
          "operate",
        ],
      ],
      ["Queue", "each", ["queue"]],
      ["Stream", "each", ["stream"]],
      ["Sweep", "each", ["sweep"]],
      ["Schedule", "each", ["schedule"]],
    ];
    test.each(functions)(
      "of %s in shape %s allows every call, those on rows of tenants to their tenant",
      async (id, shape, names) => {
        const calls = names.flatMap(callsOf);
        expect(calls.length).toBeGreaterThan(0);
        for (const call of new Map(calls.map((one) => [JSON.stringify(one), one])).values()) {
          const requests = requestsOf(call, () => ({ partitionKey: "pk" }));
          // A transaction uses one set of credentials: the tenant's, if it has one of the tenant's rows.
          const isTenants =
            isolation !== undefined &&
            requests.some(({ resource }) => resource === `${tablesArn}${prefix}-files`);
          const identity = roles[shape](`${id}${isTenants ? "TenantRole" : "Role"}`);
          const isAllowed = async (tenant: string) => {
            const by = { arn: assumedRole, tags: isTenants ? { tenant } : {} };
            return (
              await Promise.all(requests.map((request) => simulate(request, by, { identity })))
            ).every((allowed) => allowed);
          };
          expect([call, await isAllowed("acme")]).toEqual([call, true]);
          if (isTenants) expect([call, await isAllowed("globex")]).toEqual([call, false]);
        }
      },
    );

    test.each(functions)(
      "of %s in shape %s scans nothing, and writes no table where it answers queries",
      async (id, shape) => {
        const isQuery = /List|Show|Quota|DownloadUrl/.test(id);
        const denied = [
          "Scan",
          "PartiQLSelect",
          ...(isQuery ? ["PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem"] : []),
        ];
        for (const role of [`${id}Role`, `${id}TenantRole`]) {
          for (const table of ["config", "once", "outbox", "files"]) {
            for (const operation of denied) {
              const context = { "dynamodb:LeadingKeys": ["acme/files"] };
              const request = {
                action: `dynamodb:${operation}`,
                resource: `${tablesArn}${prefix}-${table}`,
                context,
              };
              const by = { arn: assumedRole, tags: { tenant: "acme" } };
              expect([
                role,
                request,
                await simulate(request, by, { identity: roles[shape](role) }),
              ]).toEqual([role, request, false]);
            }
          }
        }
      },
    );
  });
}

const assumedRole = `arn:aws:sts::${account}:assumed-role/function/run`;

/** The policies of the sample's generated roles, by their logical IDs. */
function generatedRoles(
  { prefix, parameters }: Recorded,
  shape: "one" | "each",
  isolation: object | undefined,
): (id: string) => Policy {
  const { options, ...declared } = serverInternals(sample);
  const given = {
    ssm: { path: `${parameters}/config` },
    keyRing: { parameter: `${parameters}/key-ring` },
  };
  const server = {
    ...declared,
    options: { ...options, ...given, ...(isolation === undefined ? {} : { isolation }) },
  };
  const template = serverTemplate(server, { stage: "dev", shape }).Resources as Resources; // safe: a template has these
  return (id) => roleOf(id, template, prefix).allows;
}
