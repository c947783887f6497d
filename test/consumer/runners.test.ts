import { beforeAll, expect, test } from "vitest";
import { createProject, type Project } from "./support/project.ts";

const greetings = `import { createServer } from "node:http";
import { once } from "node:events";
import { access, buildServer, createTenantConfig, defineFeature, NotFoundError } from "keelson";
import { lambdaHttp } from "keelson/lambda";
import { crashEverywhere, lambdaContext, lambdaEvent, startTestApp, testToken } from "keelson/testing";
import { z } from "zod";

const ann = { id: "ann", tenantId: "acme" };
const feature = defineFeature("greetings", (r) => {
  const config = r.config({ keys: { word: createTenantConfig("text", { default: "hello" }) } });
  r.query("greeting.show", {
    route: "GET /greetings/:name",
    access: access.authenticated,
    input: z.object({ name: z.string() }),
    handler: async (ctx, { name }) => {
      if (name === "nobody") throw new NotFoundError("person", name);
      return { text: \`\${await ctx.config(config.word)}, \${name}\` };
    },
  });
  r.channel("pigeon", { input: z.object({}), send: async () => {} });
  r.write("greeting.hook", {
    input: z.object({ url: z.string() }),
    handler: async (ctx, { url }) => {
      await ctx.delivery.send("webhook", { url, body: { text: "hello" } });
      return {};
    },
  });
});
const secret = "a secret of at least thirty-two bytes";
const build = () => buildServer({ features: [feature], auth: { secret } });

/** What the test is, whichever runner runs it. \`equal\` compares text. */
export async function greet(equal) {
  const app = await startTestApp(build(), { webhooks: { allowHttp: true, allowPrivate: true } });
  const received = [];
  const sink = createServer((request, response) => {
    received.push(request.url);
    response.end();
  }).listen(0, "127.0.0.1");
  try {
    await once(sink, "listening");
    const bob = await app.fetch("/greetings/bob", { as: ann });
    equal(await bob.text(), '{"text":"hello, bob"}');
    await app.rows.put({ scope: "tenant", tenantId: "acme", key: "greetings:config:word", value: "hi" });
    equal(JSON.stringify(await app.call("greetings.greeting.show", { name: "bob" }, { as: ann })), '{"text":"hi, bob"}');
    const failure = await app.call("greetings.greeting.show", { name: "nobody" }, { as: ann }).catch((error) => error);
    equal(failure.code, "not_found");

    const url = \`http://127.0.0.1:\${sink.address().port}/hook\`;
    await app.call("greetings.greeting.hook", { url }, { as: ann });
    await app.settled();
    equal(received.join(), "/hook");

    app.faults.before("BatchGetItem", 1).crash();
    const crashed = await app.fetch("/greetings/bob", { as: { id: "eve", tenantId: "globex" } }).catch((error) => error);
    equal(crashed.name, "CrashError");
    equal((await app.fetch("/greetings/bob", { as: ann })).status, 200);

    const cuts = await crashEverywhere(build(), {
      act: (app) => app.call("greetings.greeting.show", { name: "bob" }, { as: ann }),
      check: async (_app, answer) => equal(JSON.stringify(answer), '{"text":"hello, bob"}'),
    });
    equal(cuts.length > 0, true);

    Object.assign(process.env, app.env);
    const lambda = lambdaHttp(build());
    const answers = [await app.token(ann), await testToken(build(), ann)].map(async (token) => {
      const headers = { authorization: \`Bearer \${token}\` };
      return lambda(lambdaEvent("httpApi", { path: "/greetings/bob", headers }), lambdaContext());
    });
    for (const { body } of await Promise.all(answers)) equal(body, '{"text":"hi, bob"}');
  } finally {
    sink.close();
    await app.close();
  }
}
`;

const typed = `import { strictEqual } from "node:assert";
import test from "node:test";
import { buildServer, type Server } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { greet } from "./greetings.js";

test("greetings", async () => {
  await greet(strictEqual);
});
test("an app without features", async () => {
  const server: Server = buildServer({ features: [] });
  const app: TestApp = await startTestApp(server);
  strictEqual((await app.fetch("/health/live")).status, 200);
  await app.close();
});
`;

let project: Project;
beforeAll(async () => {
  project = await createProject({
    name: "runners",
    dependencies: { zod: "4.6.7" },
    devDependencies: { dynalite: "4.0.0", jest: "30.5.2", vitest: "5.1.0" },
    files: {
      "greetings.js": greetings,
      "plain.node.js": `import { strictEqual } from "node:assert";
import test from "node:test";
import { greet } from "./greetings.js";

test("greetings", () => greet(strictEqual));
`,
      "typed.node.ts": typed,
      "vitest/greetings.test.js": `import { expect, test } from "vitest";
import { greet } from "../greetings.js";

test("greetings", () => greet((actual, expected) => expect(actual).toBe(expected)), 60_000);
`,
      "jest/greetings.test.js": `import { greet } from "../greetings.js";

test("greetings", () => greet((actual, expected) => expect(actual).toBe(expected)), 60_000);
`,
      "jest.config.js": 'export default { transform: {}, roots: ["<rootDir>/jest"] };\n',
    },
  });
});

/** How each of them is run, as docs/testing.md says. None of them is told to end: that it does shows that nothing is left. */
const runners: readonly [
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  passed: RegExp,
][] = [
  ["vitest", ["node_modules/vitest/vitest.mjs", "run", "--dir", "vitest"], {}, /Tests .*1 passed/],
  ["node:test", ["--test", "plain.node.js"], {}, /pass 1\n.*fail 0/],
  ["node:test, without the runner of processes", ["plain.node.js"], {}, /pass 1\n.*fail 0/],
  ["node:test with types", ["--test", "typed.node.ts"], {}, /pass 2\n.*fail 0/],
  [
    "Jest",
    ["--experimental-vm-modules", "node_modules/jest/bin/jest.js"],
    {},
    /Tests: .*1 passed, 1 total/,
  ],
  [
    "node:test in an environment for development",
    ["plain.node.js"],
    { NODE_ENV: "development" },
    /pass 1\n.*fail 0/,
  ],
];

test.each(runners)(
  "%s runs an application's test, and its process exits by itself",
  async (_name, args, env, passed) => {
    const { code, stdout, stderr } = await project.run("node", args, {
      env: { ...env, NO_COLOR: "1", FORCE_COLOR: "0" },
    });
    const output = `${stdout}\n${stderr}`;
    expect({ code, output }).toMatchObject({ code: 0 });
    expect(output).toMatch(passed);
    expect(output).not.toMatch(/did not exit|open handle|Force exiting|close timed out/i);
  },
);
