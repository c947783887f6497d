import type { CommandGroup, DefinedCommand } from "./setup/define-command.ts";

/**
 * All commands: help, completion and the tests of the documents read this list. Commands are
 * loaded lazily: `keelson token` runs without AWS code.
 */
export const commandGroups: readonly CommandGroup[] = [
  {
    title: "Start",
    commands: {
      init: ["creates a project", () => import("./commands/init-command.ts")],
      token: [
        "prints a token for the Authorization header",
        () => import("./commands/token-command.ts"),
      ],
    },
  },
  {
    title: "Describe and deploy",
    commands: {
      infra: [
        "writes the CloudFormation template of a server",
        () => import("./commands/infra-command.ts"),
      ],
      contract: [
        "locks a server's contract, and lists breaking changes",
        () => import("./commands/contract-command.ts"),
      ],
      openapi: [
        "writes the OpenAPI document of a server",
        async () => ({ command: (await import("./commands/document-command.ts")).openApi }),
      ],
      asyncapi: [
        "writes the AsyncAPI document of a server's events and jobs",
        async () => ({ command: (await import("./commands/document-command.ts")).asyncApi }),
      ],
    },
  },
  {
    title: "Find out what is wrong",
    commands: {
      doctor: ["checks the resources of a server", () => import("./commands/doctor-command.ts")],
      trace: [
        "prints a request and its effects as one tree, and the stuck message",
        () => import("./commands/trace-command.ts"),
      ],
    },
  },
  {
    title: "Operate",
    commands: {
      queue: [
        "lists, moves back and deletes dead letters",
        () => import("./commands/queue-command.ts"),
      ],
      outbox: [
        "lists, puts back and removes messages that the bus or a queue refused",
        () => import("./commands/outbox-command.ts"),
      ],
      steps: [
        "lists steps, and resolves steps with an unknown outcome",
        () => import("./commands/steps-command.ts"),
      ],
      projection: [
        "rebuilds projections and prints their state",
        () => import("./commands/projection-command.ts"),
      ],
      limits: [
        "shows and resets the callers that rate limits count",
        () => import("./commands/limits-command.ts"),
      ],
      tenant: [
        "registers, suspends, exports and erases tenants",
        () => import("./commands/tenant-command.ts"),
      ],
      "api-keys": [
        "lists and revokes the API keys of a tenant",
        () => import("./commands/api-keys-command.ts"),
      ],
      "key-ring": [
        "creates, rotates and lists the keys of encrypted configuration",
        () => import("./commands/key-ring-command.ts"),
      ],
    },
  },
  {
    title: "Shell",
    commands: {
      completion: [
        "prints a script that completes commands and options in your shell",
        async () => {
          const { completionCommand } = await import("./commands/completion-command.ts");
          return { command: completionCommand(commandGroups) };
        },
      ],
    },
  },
];

export const commandNames: readonly string[] = commandGroups.flatMap(({ commands }) =>
  Object.keys(commands),
);

export async function loadCommand(name: string): Promise<DefinedCommand | undefined> {
  const group = commandGroups.find(({ commands }) => Object.hasOwn(commands, name));
  const entry = group?.commands[name];
  return entry === undefined ? undefined : (await entry[1]()).command;
}
