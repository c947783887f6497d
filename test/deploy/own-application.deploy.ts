import { execFile } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { signToken } from "../../src/base/identity/token.ts";
import { type MiniStack, startMiniStack } from "./mini-stack.ts";
import { root } from "./package.ts";

// The ten commands of docs/deploy.md, run unchanged, against an account on this machine.

const run = promisify(execFile);
const directory = mkdtempSync(join(tmpdir(), "keelson-own-"));
const application = join(directory, "my-app");
const commands = tenCommands();
let miniStack: MiniStack;

beforeAll(async () => {
  miniStack = await startMiniStack(inject("deployed"));
  linkPackages(directory); // `npx keelson` finds it there
});
afterAll(async () => {
  await miniStack?.stop();
  rmSync(directory, { recursive: true, force: true, maxRetries: 20 });
});

test("docs/deploy.md leads from a new project to an API that answers, in ten commands", async () => {
  expect(commands).toHaveLength(10);
  const printed = await shell(commands);

  expect(printed).toContain("infra/generated/all-dev.json: fits the server and dist/lambda.mjs");
  expect(printed).toMatch(/\{"status":"ready",.*\}$/);
});

test("a note is written and read through the deployed API", async () => {
  const [status, note] = await ask("POST", "/notes", { text: "milk" });
  expect(status).toBe(201);
  expect(await ask("GET", `/notes/${note["id"]}`)).toEqual([200, { id: note["id"], text: "milk" }]);
});

test("a function that the bundle does not export is reported before the deployment", async () => {
  writeFileSync(join(application, "src/server.ts"), serverOfShop);
  writeFileSync(join(application, "src/shop.ts"), shop);
  const [bundle = "", infra = "", check = ""] = commands.slice(2);
  const failed = shell(["cd my-app", bundle, infra, check]);

  await expect(failed).rejects.toThrow(
    /ScheduleLambdaFunction calls lambda\.schedule, and lambda exports no such function/,
  );
});

test("an application of three tables, an index, events and a schedule replaces it, and answers", async () => {
  writeFileSync(join(application, "src/lambda.ts"), lambdaOfShop);
  const printed = await shell(
    ["cd my-app", ...commands.slice(2)].map((line) => line.replaceAll("code-1", "code-2")),
  );
  expect(printed).toMatch(/\{"status":"ready",.*\}$/);

  const [status, order] = await ask("POST", "/orders", { customer: "zoe", item: "hat" });
  expect(status).toBe(201);
  expect(await ask("GET", "/customers/zoe/orders")).toEqual([200, { orders: [order["id"]] }]);
  // By the bus, its queue and the consumer.
  await expect
    .poll(() => ask("GET", "/stock/hat"), { timeout: 60_000, interval: 500 })
    .toEqual([200, { item: "hat", sold: 1 }]);
});

test("its schedule fires and writes in the function that a rule invokes each minute", async () => {
  const counted = async () => {
    const invoke = `lambda invoke --function-name my-app-dev-schedule ${join(directory, "fired.json")}`;
    const { stdout } = await run("aws", invoke.split(" "), { env: miniStack.env });
    expect(stdout).not.toContain("FunctionError");
    const { Count } = await miniStack.call("DynamoDB_20120810.Scan", {
      TableName: "my-app-dev-counts",
    });
    return Number(Count);
  };
  // A schedule that is new fires from its first look on: within the minute.
  await expect.poll(counted, { timeout: 150_000, interval: 3_000 }).toBeGreaterThan(0);
});

/** The lines of the document's first block. */
function tenCommands(): string[] {
  const [, block = ""] =
    /```text\n([\s\S]*?)```/.exec(readFileSync(join(root, "docs/deploy.md"), "utf8")) ?? [];
  return block.trim().split("\n");
}

/** Runs lines one after the other, up to the first that fails; returns their output. */
async function shell(lines: readonly string[]): Promise<string> {
  // This version is not on a registry, so its packages are linked. The API does not have its own name on this machine.
  const made = lines.flatMap((line) =>
    line.startsWith("npx keelson init") ? [`${line} --no-install`, "link_packages"] : [line],
  );
  const prelude = [
    "set -e",
    `link_packages() { ln -s "${join(directory, "node_modules")}" my-app/node_modules; }`,
    `curl() { local url="\${1/https:/http:}"; url="\${url/.us-east-1.amazonaws.com/.localhost:${port()}}"; command curl --silent --fail --resolve "*:${port()}:127.0.0.1" "$url"; }`,
  ];
  try {
    const { stdout } = await run("bash", ["-c", [...prelude, ...made].join("\n")], {
      cwd: directory,
      env: miniStack.env,
    });
    return stdout.trim();
  } catch (error) {
    const { stdout = "", stderr = "" } = error as {
      readonly stdout?: string;
      readonly stderr?: string;
    }; // safe: any object
    throw new Error(`${stdout}${stderr}\n${miniStack.text().slice(-2_000)}`);
  }
}

function port(): string {
  return new URL(String(miniStack.env["AWS_ENDPOINT_URL"])).port;
}

/** Does the same as `npm install`, without a registry. */
function linkPackages(folder: string): void {
  const [from, to] = [join(root, "node_modules"), join(folder, "node_modules")];
  mkdirSync(join(to, ".bin"), { recursive: true });
  for (const name of readdirSync(from))
    if (!name.startsWith(".")) symlinkSync(join(from, name), join(to, name));
  symlinkSync(root, join(to, "keelson"));
  const program = `#!/bin/sh\nexec node "${join(root, "dist/tools/cli/main.js")}" "$@"\n`;
  writeFileSync(join(to, ".bin/keelson"), program, { mode: 0o755 });
}

async function ask(
  method: string,
  path: string,
  body?: object,
): Promise<[status: number, body: Record<string, unknown>]> {
  const found = await miniStack.call("secretsmanager.ListSecrets", {});
  // Safe: a missing member fails the test.
  const [{ ARN }] = found["SecretList"] as [{ readonly ARN: string }];
  const { SecretString: secret } = await miniStack.call("secretsmanager.GetSecretValue", {
    SecretId: ARN,
  });
  const claims = { secret: String(secret), userId: "ann", tenantId: "acme", roles: [] };
  const authorization = `Bearer ${await signToken(claims, { now: () => Date.now() })}`;
  const query = "Stacks[0].Outputs[?OutputKey=='HttpApiId'].OutputValue";
  const described = [
    "cloudformation",
    "describe-stacks",
    "--stack-name",
    "my-app-dev",
    "--query",
    query,
    "--output",
    "text",
  ];
  const { stdout } = await run("aws", described, { env: miniStack.env });
  return miniStack.ask(stdout.trim(), {
    method,
    path,
    authorization,
    ...(body === undefined ? {} : { body }),
  });
}

const serverOfShop = `import { buildServer } from "keelson";
import { notes } from "./notes.ts";
import { shop } from "./shop.ts";

export const server = buildServer({ features: [notes, shop] });
`;

const lambdaOfShop = `import { lambdaHttp, lambdaQueue, lambdaSchedule, lambdaOutbox, lambdaSweep } from "keelson/lambda";
import { server } from "./server.ts";

export const http = lambdaHttp(server);
export const queue = lambdaQueue(server);
export const stream = lambdaOutbox(server);
export const sweep = lambdaSweep(server);
export const schedule = lambdaSchedule(server);
`;

const shop = `import { GetCommand, QueryCommand } from "@aws-sdk/lib-dynamodb";
import { access, defineFeature, reply } from "keelson";
import { z } from "zod";

export const shop = defineFeature("shop", (r) => {
  const orders = r.table("orders", {
    partitionKey: "pk",
    sortKey: "id",
    indexes: { byCustomer: { partitionKey: "customer", sortKey: "id" } }, tenant: false });
  const stock = r.table("stock", { partitionKey: "pk", tenant: false });
  const counts = r.table("counts", { partitionKey: "pk", tenant: false });
  r.event("order.placed", z.object({ item: z.string() }));

  r.write("order.place", {
    route: "POST /orders",
    access: access.authenticated,
    input: z.object({ customer: z.string(), item: z.string() }),
    handler: async (ctx, { customer, item }) => {
      const id = ctx.requestId;
      await ctx.publish("order.placed", { item });
      return ctx.commit(
        [{ Put: { TableName: orders.name, Item: { pk: id, id, customer, item } } }],
        reply({ id }, { status: 201 }),
      );
    },
  });
  r.query("order.list", {
    route: "GET /customers/:customer/orders",
    access: access.authenticated,
    input: z.object({ customer: z.string() }),
    handler: async (ctx, { customer }) => {
      const { Items = [] } = await ctx.db.send(
        new QueryCommand({
          TableName: orders.name,
          IndexName: orders.index("byCustomer"),
          KeyConditionExpression: "customer = :customer",
          ExpressionAttributeValues: { ":customer": customer },
        }),
      );
      return { orders: Items.map(({ id }) => id) };
    },
  });
  r.query("stock.show", {
    route: "GET /stock/:item",
    access: access.authenticated,
    input: z.object({ item: z.string() }),
    handler: async (ctx, { item }) => {
      const { Item } = await ctx.db.send(new GetCommand({ TableName: stock.name, Key: { pk: item }, ConsistentRead: true }));
      return { item, sold: Item?.sold ?? 0 };
    },
  });
  r.on("order.placed", { name: "sell", handler: async (ctx, { payload: { item } }) => {
    await ctx.commit(
      [
        {
          Update: {
            TableName: stock.name,
            Key: { pk: item },
            UpdateExpression: "ADD sold :one",
            ExpressionAttributeValues: { ":one": 1 },
          },
        },
      ],
      undefined,
    );
  } });
  r.schedule("shop.count", {
    cron: "* * * * *",
    handler: async (ctx, { at }) => {
      ctx.log.info("shop.counted");
      await ctx.commit([{ Put: { TableName: counts.name, Item: { pk: at.toISOString() } } }], undefined);
    },
  });
});
`;
