import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { unplaced } from "../../../test/support/unplaced.ts";
import { BootError, type BootProblem } from "../../base/errors/boot.ts";
import { quoted } from "../../base/errors/quoted.ts";
import { createTenantConfig } from "../../parts/config/declare/declaration.ts";
import { defineFeature } from "../features/feature.ts";
import type { ServerOptions } from "../registry/options.ts";
import { createRegistry, usesMessages } from "../registry/registry.ts";
import { buildServer } from "../server/server.ts";

type Declare = (...given: readonly unknown[]) => unknown;
/** What declares a feature, as plain JavaScript may call it. */
type PlainBuilder = Readonly<
  Record<"event" | "on" | "job" | "channel" | "query" | "write" | "config", Declare>
>;

function plainFeature(name: string, declare: (r: PlainBuilder) => void) {
  return defineFeature(name, (r) => void declare(r as unknown as PlainBuilder)); // so that it may be called wrongly
}

/** The one error that building a server ends in; `undefined` where it is built. */
function bootError(options: unknown): BootError | undefined {
  try {
    buildServer(options as ServerOptions);
  } catch (error) {
    if (error instanceof BootError) return error;
    throw error;
  }
  return undefined;
}

function problemsOf(options: unknown) {
  return unplaced(bootError(options)?.problems);
}

const schema = z.object({});
const run = async () => undefined;
const badSchema = { rule: "schema", fix: "pass a schema of zod, valibot or arktype" };
const badFunction = { rule: "handler", fix: "pass async (ctx, payload) => ..." };
const badHandler = { rule: "handler", fix: "pass async (ctx, event) => ..." };
const badEvent = {
  rule: "event-type",
  fix: 'use two kebab-case words, for example "file.created"',
};
const badKeep = {
  rule: "event-keep",
  fix: "use { keepDays: 30 }, from 1 to 3650, or { keep: true } for ever",
};
const badConsumer = {
  rule: "consumer-name",
  fix: 'choose a name for its task, for example "enqueue-scan"',
};
const undeclared = {
  rule: "event-undeclared",
  fix: "declare it with r.event, or add the feature that does",
};
const badJob = { rule: "job-name", fix: 'use two kebab-case words, for example "file.scan"' };
const badScope = { rule: "dedup-scope", fix: 'use "tenant" or "user"' };
const badLimits = {
  rule: "concurrency",
  fix: "use { perTenant: 2 } or { total: 10 }, from 1 to 1,000, or number keys",
};
const badChannel = {
  rule: "channel-name",
  fix: "name it with lower-case letters, digits and hyphens",
};
const reserved = { rule: "channel-reserved", fix: "choose another name" };
const unknownChannelOption = { rule: "unknown-option", fix: "known are input, send" };

type Problem = Pick<BootProblem, "key" | "message" | "fix"> & { readonly rule: string };
type Case = [what: string, declare: (r: PlainBuilder) => void, ...problems: Problem[]];

const events: readonly Case[] = [
  [
    "of one word",
    (r) => r.event("created", schema),
    { ...badEvent, key: "event created", message: 'type "created" is not <entity>.<event name>' },
  ],
  [
    "with capitals",
    (r) => r.event("File.created", schema),
    {
      ...badEvent,
      key: "event File.created",
      message: 'type "File.created" is not <entity>.<event name>',
    },
  ],
  [
    "called by a number",
    (r) => r.event(7, schema),
    { ...badEvent, key: "event 7", message: "type 7 is not <entity>.<event name>" },
  ],
  [
    "without a schema",
    (r) => r.event("item.bare"),
    {
      ...badSchema,
      key: "event item.bare",
      message: "the second argument is not a Standard Schema",
    },
  ],
  [
    "whose schema is none",
    (r) => r.event("item.odd", { "~standard": {} }),
    {
      ...badSchema,
      key: "event item.odd",
      message: "the second argument is not a Standard Schema",
    },
  ],
  ...([0, 1.5, 3_651, "30", Number.POSITIVE_INFINITY].map((keepDays, index) => [
    `that is kept for ${keepDays} days`,
    (r) => r.event(`item.kept-${index}`, schema, { keepDays }),
    { ...badKeep, key: `event item.kept-${index}`, message: "its third argument is an object" },
  ]) satisfies Case[]),
  ...([{}, { keep: false }, { keep: true, keepDays: 1 }].map((options, index) => [
    `that is kept by ${JSON.stringify(options)}`,
    (r) => r.event(`item.odd-${index}`, schema, options),
    { ...badKeep, key: `event item.odd-${index}`, message: "its third argument is an object" },
  ]) satisfies Case[]),
  [
    "whose options are null",
    (r) => r.event("item.kept-null", schema, null),
    { ...badKeep, key: "event item.kept-null", message: "its third argument is null" },
  ],
  [
    "with an unknown option",
    (r) => r.event("item.kept-hours", schema, { keepDays: 1, keepHours: 2 }),
    {
      rule: "unknown-option",
      fix: "known are keepDays, keep",
      key: "event item.kept-hours",
      message: 'unknown option "keepHours"',
    },
  ],
];

const consumers: readonly Case[] = [
  [
    "of an event that nobody declares",
    (r) => r.on("item.unheard-of", { name: "listen", handler: run }),
    {
      ...undeclared,
      key: "wrong.item.listen",
      message: 'it consumes "item.unheard-of", which no feature of this server declares',
    },
  ],
  [
    "with capitals",
    (r) => r.on("item.made", { name: "enqueueScan", handler: run }),
    {
      ...badConsumer,
      key: "wrong.item.enqueueScan",
      message: 'name "enqueueScan" of a consumer is not in kebab case',
    },
  ],
  [
    "of two words",
    (r) => r.on("item.made", { name: "item.scan", handler: run }),
    {
      ...badConsumer,
      key: "wrong.item.item.scan",
      message: 'name "item.scan" of a consumer is not in kebab case',
    },
  ],
  [
    "called by a number",
    (r) => r.on("item.made", { name: 7, handler: run }),
    { ...badConsumer, key: "wrong.item.7", message: "name 7 of a consumer is not in kebab case" },
  ],
  [
    "whose name and function were left out",
    (r) => r.on("item.made"),
    {
      ...badConsumer,
      key: "wrong.item.undefined",
      message: "name undefined of a consumer is not in kebab case",
    },
    { ...badHandler, key: "wrong.item.undefined", message: "`handler` is not a function" },
  ],
  [
    "with an unknown option",
    (r) => r.on("item.made", { name: "wait", handler: run, delay: 5 }),
    {
      rule: "unknown-option",
      fix: "known are name, handler, concurrency",
      key: "wrong.item.wait",
      message: 'unknown option "delay"',
    },
  ],
  [
    "whose limit is a list",
    (r) => r.on("item.made", { name: "limited", handler: run, concurrency: [2] }),
    { ...badLimits, key: "wrong.item.limited", message: "`concurrency` is [2]" },
  ],
  [
    "without a function",
    (r) => r.on("item.made", { name: "idle", handler: { run } }),
    { ...badHandler, key: "wrong.item.idle", message: "`handler` is not a function" },
  ],
];

const jobs: readonly Case[] = [
  [
    "of one word",
    (r) => r.job("scan", { input: schema, handler: run }),
    { ...badJob, key: "wrong.scan", message: 'name "scan" is not <entity>.<operation>' },
  ],
  [
    "called by its full name",
    (r) => r.job("wrong.item.scan", { input: schema, handler: run }),
    {
      ...badJob,
      key: "wrong.wrong.item.scan",
      message: 'name "wrong.item.scan" is not <entity>.<operation>',
    },
  ],
  [
    "without options",
    (r) => r.job("item.bare"),
    { ...badSchema, key: "wrong.item.bare", message: "`input` is not a Standard Schema" },
    { ...badFunction, key: "wrong.item.bare", message: "`handler` is not a function" },
  ],
  [
    "whose options are null",
    (r) => r.job("item.null", null),
    { ...badSchema, key: "wrong.item.null", message: "`input` is not a Standard Schema" },
    { ...badFunction, key: "wrong.item.null", message: "`handler` is not a function" },
  ],
  [
    "with an option that nobody knows",
    (r) => r.job("item.typo", { input: schema, handler: run, dedupkey: run }),
    {
      rule: "unknown-option",
      fix: "did you mean `dedupKey`? known are input, handler, dedupKey, dedupScope, order, concurrency",
      key: "wrong.item.typo",
      message: 'unknown option "dedupkey"',
    },
  ],
  [
    "whose dedupKey is a text",
    (r) => r.job("item.key", { input: schema, handler: run, dedupKey: "name" }),
    { ...badFunction, key: "wrong.item.key", message: "`dedupKey` is not a function" },
  ],
  [
    "whose order is a text",
    (r) => r.job("item.order", { input: schema, handler: run, order: "name" }),
    { ...badFunction, key: "wrong.item.order", message: "`order` is not a function" },
  ],
  [
    "whose dedupScope is another",
    (r) => r.job("item.scope", { input: schema, handler: run, dedupScope: "server" }),
    { ...badScope, key: "wrong.item.scope", message: '`dedupScope` is "server"' },
  ],
  [
    "whose dedupScope is null",
    (r) => r.job("item.scopeless", { input: schema, handler: run, dedupScope: null }),
    { ...badScope, key: "wrong.item.scopeless", message: "`dedupScope` is null" },
  ],
  ...[
    0,
    "2",
    {},
    { perTenant: 0 },
    { perTenant: 1.5 },
    { total: 1_001 },
    { each: 2 },
    { total: {} },
    { perTenant: undefined },
    { perTenant: 2, each: undefined },
  ].map(
    (concurrency, index): Case => [
      `whose concurrency is ${inspect(concurrency)}`,
      (r) => r.job(`item.limited-${index}`, { input: schema, handler: run, concurrency }),
      {
        ...badLimits,
        key: `wrong.item.limited-${index}`,
        message: `\`concurrency\` is ${quoted(concurrency)}`,
      },
    ],
  ),
];

const channels: readonly Case[] = [
  [
    "of two words",
    (r) => r.channel("mail.html", { input: schema, send: run }),
    {
      ...badChannel,
      key: "channel mail.html",
      message: 'channel name "mail.html" is not in kebab case',
    },
  ],
  [
    "called by a number",
    (r) => r.channel(7, { input: schema, send: run }),
    { ...badChannel, key: "channel 7", message: "channel name 7 is not in kebab case" },
  ],
  [
    "called log",
    (r) => r.channel("log", { input: schema, send: run }),
    { ...reserved, key: "channel log", message: 'channel name "log" is keelson\'s own' },
  ],
  [
    "called webhook",
    (r) => r.channel("webhook", { input: schema, send: run }),
    { ...reserved, key: "channel webhook", message: 'channel name "webhook" is keelson\'s own' },
  ],
  [
    "without options",
    (r) => r.channel("bare"),
    { ...badSchema, key: "channel bare", message: "`input` is not a Standard Schema" },
    { ...badFunction, key: "channel bare", message: "`send` is not a function" },
  ],
  [
    "with an option that nobody knows",
    (r) => r.channel("typo", { input: schema, send: run, handler: run }),
    { ...unknownChannelOption, key: "channel typo", message: 'unknown option "handler"' },
  ],
];

/** What the consumers above consume. */
const sound = plainFeature("sound", (r) => r.event("item.made", schema));

describe.each<[string, readonly Case[]]>([
  ["an event", events],
  ["a consumer", consumers],
  ["a job", jobs],
  ["a channel", channels],
])("%s", (_what, cases) => {
  test.each(cases)("%s is reported with a fix", (_name, declare, ...problems) => {
    const expected = problems.map((problem) => ({ feature: "wrong", ...problem }));
    expect(problemsOf({ features: [sound, plainFeature("wrong", declare)] })).toEqual(expected);
  });
});

test("a consumer with its name and its function as arguments lacks both options", () => {
  const wrong = plainFeature("wrong", (r) => r.on("item.made", "scan", run));
  expect(problemsOf({ features: [sound, wrong] }).map(({ message }) => message)).toEqual([
    "name undefined of a consumer is not in kebab case",
    "`handler` is not a function",
  ]);
});

test("reports all wrong declarations at once, in one error that names each", () => {
  const all = [...events, ...consumers, ...jobs, ...channels];
  const wrong = plainFeature("wrong", (r) => {
    for (const [, declare] of all) declare(r);
  });
  const error = bootError({ features: [sound, wrong] });
  const expected = all
    .flatMap(([, , ...problems]) => problems)
    .map((problem) => ({ feature: "wrong", ...problem }));
  expect(error?.problems).toHaveLength(expected.length);
  expect(unplaced(error?.problems)).toEqual(expect.arrayContaining(expected));
  for (const { key, message, fix } of expected)
    expect(error?.message).toContain(`  ${key}: ${message}; ${fix}`);
});

const circle: { itself?: unknown } = {};
circle.itself = circle;

test.each([
  ["undefined", undefined],
  ["null", null],
  ["an object", {}],
  ["a list", ["item.sold"]],
  ["a function", run],
  ["a bigint", 1n],
  ["a symbol", Symbol("item.made")],
  ["an object without a prototype", Object.create(null)],
  ["an object that holds itself", circle],
])("%s as a name or an option is reported, never thrown", (_what, value) => {
  const declarations: readonly ((r: PlainBuilder) => void)[] = [
    (r) => r.event(value, schema),
    (r) => r.on(value, { name: "listen", handler: run }),
    (r) => r.on("item.made", { name: value, handler: run }),
    (r) => r.job(value, { input: schema, handler: run }),
    (r) => r.job("item.scan", { input: schema, handler: run, dedupScope: value ?? 7 }),
    (r) => r.channel(value, { input: schema, send: run }),
  ];
  for (const declare of declarations)
    expect(problemsOf({ features: [sound, plainFeature("wrong", declare)] })).toHaveLength(1);
});

const once = { rule: "", message: "", fix: "rename one of the two, or declare it once" };
const twice = (what: string) => ({
  ...once,
  rule: `duplicate-${what}`,
  message: `this ${what} is declared twice`,
});
const taken = {
  rule: "duplicate-name",
  message: "a handler, consumer, job, receiver or schedule of this name is declared as well",
  fix: "rename one of them",
};

test.each<[string, (r: PlainBuilder) => void, ...Problem[]]>([
  [
    "an event",
    (r) => repeat(() => r.event("item.sold", schema)),
    { key: "item.sold", ...twice("event") },
  ],
  [
    "a consumer",
    (r) => repeat(() => r.on("item.made", { name: "pack", handler: run })),
    { key: "one.item.pack", ...twice("consumer") },
  ],
  [
    "a job",
    (r) => repeat(() => r.job("item.pack", { input: schema, handler: run })),
    { key: "one.item.pack", ...twice("job") },
  ],
  [
    "a channel",
    (r) => repeat(() => r.channel("mail", { input: schema, send: run })),
    { key: "mail", ...twice("channel") },
  ],
  [
    "a consumer and a handler",
    (r) => {
      r.on("item.made", { name: "pack", handler: run });
      r.write("item.pack", { handler: run });
    },
    { key: "one.item.pack", ...taken },
  ],
  [
    "a job and a handler",
    (r) => {
      r.job("item.pack", { input: schema, handler: run });
      r.query("item.pack", { handler: run });
    },
    { key: "one.item.pack", ...taken },
  ],
  [
    "a consumer and a job",
    (r) => {
      r.on("item.made", { name: "pack", handler: run });
      r.job("item.pack", { input: schema, handler: run });
    },
    { key: "one.item.pack", ...taken },
    { key: "one.item.pack", ...taken },
  ],
])("declaring %s twice under the same name is reported", (_what, declare, ...problems) => {
  const expected = problems.map((problem) => ({ feature: "one", ...problem }));
  expect(problemsOf({ features: [sound, plainFeature("one", declare)] })).toEqual(expected);
});

function repeat(declare: () => void): void {
  declare();
  declare();
}

test("events and channels belong to the whole server: two features cannot declare the same one", () => {
  const declare = (r: PlainBuilder) => {
    r.event("item.sold", schema);
    r.channel("mail", { input: schema, send: run });
    r.job("item.pack", { input: schema, handler: run });
    r.on("item.sold", { name: "count", handler: run });
  };
  expect(
    problemsOf({ features: [plainFeature("one", declare), plainFeature("two", declare)] }),
  ).toEqual([
    { feature: "two", key: "item.sold", ...twice("event") },
    { feature: "two", key: "mail", ...twice("channel") },
  ]);
});

test("a limit of undefined is absent", () => {
  const declare = (r: PlainBuilder) => {
    r.job("item.pack", {
      input: schema,
      handler: run,
      concurrency: { perTenant: 2, total: undefined },
    });
    r.job("item.ship", {
      input: schema,
      handler: run,
      concurrency: { perTenant: undefined, total: 10 },
    });
  };
  expect(problemsOf({ features: [plainFeature("one", declare)] })).toEqual([]);
});

test("the registry has each valid declaration under its name, with its options", () => {
  const [handler, dedupKey, order, send] = [
    async () => 1,
    () => "key",
    () => "order",
    async () => 2,
  ];
  const shop = plainFeature("shop", (r) => {
    r.on("item.sold", { name: "count", handler: run });
    r.event("item.sold", schema);
    r.job("item.pack", { input: schema, handler });
    r.job("item.ship", { input: schema, handler, dedupKey, dedupScope: "user", order });
    r.channel("mail", { input: schema, send });
  });
  const { registry } = buildServer({ features: [shop] });
  const [feature, input] = ["shop", schema];
  expect([...registry.events]).toEqual([["item.sold", { feature, type: "item.sold", schema }]]);
  expect([...registry.consumers.values()]).toEqual([
    { feature, name: "shop.item.count", type: "item.sold", run },
  ]);
  expect(Object.fromEntries(registry.jobs)).toEqual({
    "shop.item.pack": {
      feature,
      name: "shop.item.pack",
      input,
      run: handler,
      dedupScope: "tenant",
    },
    "shop.item.ship": {
      feature,
      name: "shop.item.ship",
      input,
      run: handler,
      dedupKey,
      dedupScope: "user",
      order,
    },
  });
  expect([...registry.channels]).toEqual([["mail", { feature, name: "mail", input, send }]]);
});

test.each<[string, (r: PlainBuilder) => void, boolean]>([
  ["nothing", () => {}, false],
  ["a handler", (r) => r.query("item.show", { handler: run }), false],
  ["an event", (r) => r.event("item.sold", schema), true],
  ["a consumer", (r) => r.on("item.sold", { name: "count", handler: run }), true],
  ["a job", (r) => r.job("item.pack", { input: schema, handler: run }), true],
  ["a channel", (r) => r.channel("mail", { input: schema, send: run }), true],
])("knows whether a feature with %s needs the bus or a queue", (_what, declare, expected) => {
  expect(usesMessages(createRegistry([plainFeature("shop", declare)]))).toBe(expected);
});

test("a server with webhook options needs a queue, whatever its features declare", () => {
  expect(usesMessages(createRegistry([], { webhook: {} }))).toBe(true);
  expect(usesMessages(createRegistry([], {}))).toBe(false);
});

test("invalid features are reported by their position", () => {
  expect(problemsOf({ features: "shop" })).toEqual([
    {
      feature: "",
      key: "features",
      rule: "option-type",
      message: "`features` is not an array",
      fix: "pass features: [files, billing]",
    },
  ]);
  expect(problemsOf({ features: [sound, {}] })).toEqual([
    {
      feature: "",
      key: "features[1]",
      rule: "not-a-feature",
      message: "it was not made by defineFeature",
      fix: "pass what defineFeature returns",
    },
  ]);
});

const secretHolder = defineFeature("hooks", (r) =>
  r.config({
    keys: {
      secret: createTenantConfig("text", { default: "s" }),
      size: createTenantConfig("number", { default: 1 }),
    },
  }),
);

test("valid delivery options are accepted", () => {
  const features = [secretHolder];
  for (const delivery of [
    undefined,
    {},
    { webhook: undefined },
    { webhook: {} },
    {
      webhook: { secret: secretHolder.secret, allowHttp: true, allowPrivate: false, timeoutMs: 1 },
    },
    {
      webhook: {
        secret: undefined,
        allowHttp: undefined,
        allowPrivate: undefined,
        timeoutMs: undefined,
      },
    },
  ]) {
    expect(problemsOf({ features, delivery })).toEqual([]);
  }
});

const anObject = { rule: "option-type", message: "it is not an object", fix: "pass an object" };
const wanted = (given: string, use: string) => ({
  rule: "option-type",
  message: `${given} is not allowed`,
  fix: `use ${use}`,
});
const milliseconds = "1 to 300,000 milliseconds";

test.each<[string, unknown, ...Problem[]]>([
  ["a number", 7, { key: "delivery", ...anObject }],
  ["null", null, { key: "delivery", ...anObject }],
  ["a list", [], { key: "delivery", ...anObject }],
  [
    "options that nobody knows",
    { webhooks: {} },
    {
      key: "delivery.webhooks",
      rule: "unknown-option",
      message: 'unknown option "webhooks"',
      fix: "did you mean `webhook`? known are webhook",
    },
  ],
  ["a webhook that is a flag", { webhook: true }, { key: "delivery.webhook", ...anObject }],
  ["a webhook that is null", { webhook: null }, { key: "delivery.webhook", ...anObject }],
  [
    "options of webhooks that nobody knows",
    { webhook: { allowHTTP: true } },
    {
      key: "delivery.webhook.allowHTTP",
      rule: "unknown-option",
      message: 'unknown option "allowHTTP"',
      fix: "did you mean `allowHttp`? known are secret, allowHttp, allowPrivate, timeoutMs",
    },
  ],
  [
    "everything of another kind",
    { webhook: { secret: 7, allowHttp: "yes", allowPrivate: 1, timeoutMs: 0 } },
    {
      key: "delivery.webhook.secret",
      ...wanted("a value of type number", "the handle of a key of type text"),
    },
    { key: "delivery.webhook.allowHttp", ...wanted('"yes"', "true or false") },
    { key: "delivery.webhook.allowPrivate", ...wanted("1", "true or false") },
    { key: "delivery.webhook.timeoutMs", ...wanted("0", milliseconds) },
  ],
  [
    "a secret that is no handle",
    { webhook: { secret: { id: 7 }, timeoutMs: 1.5 } },
    {
      key: "delivery.webhook.secret",
      ...wanted("a value of type object", "the handle of a key of type text"),
    },
    { key: "delivery.webhook.timeoutMs", ...wanted("1.5", milliseconds) },
  ],
])("%s as the option delivery is reported with a fix", (_what, delivery, ...problems) => {
  expect(problemsOf({ features: [sound], delivery })).toEqual(
    problems.map((problem) => ({ feature: "", ...problem })),
  );
});

test("a webhook secret written into the options does not appear in the error", () => {
  const error = bootError({ features: [], delivery: { webhook: { secret: "whsec_c2VjcmV0" } } });
  expect(error?.problems).toHaveLength(1);
  expect(JSON.stringify(error?.problems) + String(error)).not.toContain("c2VjcmV0");
});

test.each([
  ["the handle of a number", [secretHolder], secretHolder.size],
  ["a handle of a feature that the server does not have", [], secretHolder.secret],
])(
  "%s as a webhook's secret is reported before any delivery can fail",
  (_whose, features, secret) => {
    const problems = problemsOf({ features, delivery: { webhook: { secret } } });
    expect(problems).toMatchObject([{ feature: "", key: "delivery.webhook.secret" }]);
  },
);
