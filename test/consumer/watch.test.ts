import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { freePort } from "../support/free-port.ts";
import { createProject, type Project } from "./support/project.ts";

const main = `import { access, buildServer, defineFeature } from "keelson";
import { runContainer } from "keelson/container";
import { z } from "zod";
import { word } from "./word.ts";

const words = defineFeature("words", (r) => {
  const table = r.table("words", { partitionKey: "pk", tenant: false });
  r.query("word.show", {
    route: "GET /word",
    access: access.everyone,
    handler: async (ctx) => {
      const { GetCommand } = await import("@aws-sdk/lib-dynamodb");
      const { Item } = await ctx.db.send(new GetCommand({ TableName: table.name, Key: { pk: "said" } }));
      return { word, said: Item?.said ?? null };
    },
  });
  r.event("word.said" as never, z.object({}) as never);
  r.on("word.said" as never, { name: "hear", handler: async () => {} });
  r.job("word.check", { input: z.object({}), handler: async () => {} });
  r.write("word.say", {
    route: "POST /word",
    access: access.everyone,
    handler: async (ctx) => {
      const { PutCommand } = await import("@aws-sdk/lib-dynamodb");
      await ctx.db.send(new PutCommand({ TableName: table.name, Item: { pk: "said", said: word } }));
      return { word };
    },
  });
});
await runContainer(buildServer({ features: [words] }));
`;
const wordFile = (word: string) => `export const word: string = ${JSON.stringify(word)};\n`;

let project: Project;
beforeAll(async () => {
  project = await createProject({
    name: "watch",
    isWatched: true,
    dependencies: { "@aws-sdk/lib-dynamodb": "3.1162.0", zod: "4.6.7" },
    devDependencies: { dynalite: "4.0.0", nodemon: "3.1.14", tsx: "4.23.15" },
    files: { "main.ts": main, "word.ts": wordFile("one") },
  });
});

/** How to start each of them, as docs/local.md says. */
const watchers: readonly [
  name: string,
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
][] = [
  ["node --watch", "node", ["--watch", "main.ts"], {}],
  ["tsx watch", "tsx", ["watch", "main.ts"], { KEELSON_WATCH: "1" }],
  [
    "nodemon",
    "nodemon",
    ["--signal", "SIGTERM", "--exec", "node main.ts", "--ext", "ts"],
    { KEELSON_WATCH: "1" },
  ],
];

test.each(watchers)(
  "%s starts an application on the embedded stack, and reloads it without a linger, keeping the stack and its data",
  async (name, command, args, env) => {
    const port = await freePort(); // watchers start the application with the same one each time
    const directory = join(project.directory, `.keelson-${port}`);
    const answer = async () => {
      const response = await fetch(`http://127.0.0.1:${port}/word`).catch(() => undefined);
      return response?.ok
        ? ((await response.json()) as { word: string; said: string | null })
        : undefined;
    };
    project.write("word.ts", wordFile("one"));
    const app = project.start(command, args, {
      env: {
        ...env,
        NODE_ENV: "development",
        LOG_FORMAT: "json",
        PORT: String(port),
        KEELSON_DIRECTORY: directory,
      },
    });
    await app.printed(/server\.started/);
    expect(await answer()).toEqual({ word: "one", said: null });
    await fetch(`http://127.0.0.1:${port}/word`, {
      method: "POST",
      headers: { "idempotency-key": "1" },
    });

    const reloadsMs: number[] = [];
    for (const word of ["two", "three", "four"]) {
      const beganMs = performance.now();
      project.write("word.ts", wordFile(word));
      await expect.poll(answer, { interval: 10 }).toEqual({ word, said: "one" });
      reloadsMs.push(Math.round(performance.now() - beganMs));
    }
    console.log(`${name}: reloads took ${reloadsMs.join(", ")} ms`);

    await app.stop("SIGINT");
    const lines = app.output().match(/\{"level".*\}/g) ?? []; // tsx clears the screen in front of one
    const said = (msg: string) =>
      lines.map((line) => JSON.parse(line)).filter((line) => line.msg === msg);
    expect(said("embedded.attached")).toHaveLength(3);
    expect(said("embedded.stopped")).toEqual([]);
    const lingersMs = said("shutdown.completed").map(({ phaseMs }) => phaseMs.draining);
    expect(lingersMs.length).toBeGreaterThanOrEqual(3);
    expect(lingersMs).toEqual(lingersMs.map(() => 0));
  },
);

test("an application with queues reloads without waiting for its idle polls", async () => {
  const port = await freePort();
  project.write("word.ts", wordFile("zero"));
  const app = project.start("node", ["--watch", "main.ts"], {
    env: {
      ...{ NODE_ENV: "development", LOG_FORMAT: "json", PORT: String(port) },
      KEELSON_DIRECTORY: join(project.directory, `.keelson-${port}`),
    },
  });
  const word = () =>
    fetch(`http://127.0.0.1:${port}/word`).then(
      (answer) => answer.json(),
      () => undefined,
    );
  await expect.poll(word, { interval: 10 }).toMatchObject({ word: "zero" });
  for (let count = 1; count <= 4; count += 1) {
    // Past what is loaded once it answers, so that the last poll is idle.
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    project.write("word.ts", wordFile(`word ${count}`));
    await expect.poll(word, { interval: 10 }).toMatchObject({ word: `word ${count}` });
  }
  await app.stop("SIGINT");
  const tookMs = (app.output().match(/\{"level".*\}/g) ?? [])
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === "shutdown.completed")
    .map(({ totalMs }) => totalMs)
    .slice(0, 4); // the last process may stop before it polls
  console.log(`shutdowns took ${tookMs.join(", ")} ms`);
  // At the signal, each has most of a poll of a second before it.
  expect(Math.min(...tookMs)).toBeLessThan(500);
});

test("a port in use is reported in one sentence that gives the fix, with exit code 1", async () => {
  const taken = createServer().listen(0);
  await once(taken, "listening");
  const { port } = taken.address() as AddressInfo; // it listens on TCP
  try {
    const { code, stdout, stderr } = await project.run("node", ["main.ts"], {
      env: { NODE_ENV: "development", LOG_FORMAT: "json", PORT: String(port) },
    });
    const { msg, message, stack } = JSON.parse(stdout.trim());

    expect({ code, stderr, msg, stack }).toEqual({
      code: 1,
      stderr: "",
      msg: "server.start_failed",
      stack: undefined,
    });
    expect(message).toBe(
      `Port ${port} is in use: stop the process that listens on it, or set PORT to another one`,
    );
  } finally {
    taken.close();
  }
});
