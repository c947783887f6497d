/**
 * The folders of src/ from top to bottom. A file imports from its own folder and from the folders below it. The first name is
 * the wing, the last the room; `.` stands for the files of src/ itself.
 */
export const folders = [
  ".",

  "tools/testing",
  "tools/testing/races",
  "tools/testing/app",
  "tools/cli",
  "tools/cli/commands",
  "tools/cli/trace",
  "tools/cli/queue",
  "tools/cli/doctor",
  "tools/cli/init",
  "tools/cli/setup",
  "tools/contract",
  "tools/infra/nested",
  "tools/infra",
  "tools/bundle",

  "hosts/lambda",
  "hosts/middy",
  "hosts/lambda-http",
  "hosts/claim-layer",
  "hosts/container",
  "hosts/container-http",

  "aws/adapters",
  "aws/tables",
  "aws/sessions",
  "aws/messaging",
  "aws/stores",
  "aws/light",
  "aws/clients",

  "app/server",
  "app/routes",
  "app/metrics",
  "app/operators",
  "app/delivery",
  "app/openapi",
  "app/run",
  "app/ctx",
  "app/callers",
  "app/runtime",
  "app/tenants",
  "app/observe",
  "app/registry",
  "app/features",
  "app/projections",
  "app/schedules",
  "app/handlers",

  "parts/webhooks",
  "parts/messages",
  "parts/http",
  "parts/limits",
  "parts/once",
  "parts/tenant-registry",
  "parts/api-keys",
  "parts/wall",
  "parts/config/operate",
  "parts/config/cache",
  "parts/config/read",
  "parts/config/declare",

  "embedded/stack",
  "embedded/parameters",
  "embedded/bus",
  "embedded/queues",
  "embedded/dynamodb",
  "embedded/service",

  "clients/browser",
  "clients/fetch",

  "base/metrics",
  "base/secrets",
  "base/identity",
  "base/log",
  "base/types",
  "base/request",
  "base/process",
  "base/sizes",
  "base/errors",
];

/** Files that may import a module whose name they compute, each with its reason. */
export const computedImports = {
  "build-server.ts": "loads hosts/container/adapters.ts, unseen by bundlers",
  "app/openapi/json-schema.ts": "loads a package of the application",
  "tools/cli/setup/load-server.ts": "loads the module that the user names",
};

/** Environment variables that only one file reads, for all others. */
export const variables = {
  "base/process/platform.ts": [
    "AWS_LAMBDA_FUNCTION_NAME",
    "AWS_LAMBDA_HTTP_ENDPOINT",
    "AWS_LAMBDA_INITIALIZATION_TYPE",
  ],
};

/**
 * Values that only some files may import: by the file that exports them, their names and the files, each with its reason.
 * Everything else in the framework takes its scope as an argument.
 */
export const readers = {
  "base/request/ambient.ts": {
    names: ["ambientStore", "currentContext"],
    allowed: {
      "app/handlers/table-handle.ts": "`table.name` has no ctx in its public form",
      "aws/adapters/counted-costs.ts": "a middleware of an AWS client has no ctx",
      "app/server/server-runs.ts": "server.run does not take the ctx of the run that calls it",
      "app/projections/projection.ts": "`projection.key` has no ctx in its public form",
      "index.ts": "exports `currentContext` for code without ctx",
    },
  },
};
