import { describe, expect, test } from "vitest";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer, serverInternals } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import { lambdaSchedule } from "../../hosts/lambda/workers.ts";
import { lambdaHandler, lambdaHttp } from "../../hosts/lambda-http/http-handler.ts";
import { mistakes } from "./check.ts";
import type { ComparedTemplate } from "./difference.ts";
import type { FrontName } from "./fronts.ts";
import { type ServerTemplateOptions, serverTemplate } from "./server-template.ts";

const bells = defineFeature("bells", (r) => {
  const options = { access: access.everyone, handler: async () => undefined };
  r.query("bell.ring", { ...options, route: "GET /bells/:id" });
  r.schedule("bell.oil", { cron: "0 3 * * *", handler: async () => undefined });
});
const declared = buildServer({ features: [bells] });
const server = serverInternals(declared);
const made = (options: Partial<ServerTemplateOptions>): ComparedTemplate =>
  structuredClone(serverTemplate(server, { stage: "dev", ...options }));
const stream = true;
const schedule = lambdaSchedule(declared);
const entry = (http: unknown, more: object = {}) => ({
  name: "lambda",
  exports: { http, schedule, ...more },
});
const whole = entry(lambdaHttp(declared));
const streaming = entry(lambdaHttp(declared, { stream }));

describe("the template of a front", () => {
  test.each<FrontName>(["http", "web", "rest", "url"])("%s has no mistakes", (front) => {
    expect(mistakes(server, made({ front }))).toEqual([]);
    expect(mistakes(server, made({ front }), whole)).toEqual([]);
    expect(mistakes(server, made({ front }), undefined, { front })).toEqual([]);
  });

  test.each<FrontName>(["rest", "url"])("%s may stream with functions that do", (front) => {
    const template = made({ front, stream });
    expect(mistakes(server, template, streaming, { front, stream })).toEqual([]);
    expect(
      mistakes(
        server,
        template,
        entry(() => whole),
        { stream },
      ),
    ).toEqual([]);
  });

  test.each([
    ["rest", "a REST API"],
    ["url", "a function URL"],
  ] as const)(
    "%s is refused with a function that streams, or does not, unlike it",
    (front, name) => {
      expect(mistakes(server, made({ front }), streaming)).toEqual([
        `HttpLambdaFunction streams, and ${name} calls it, which does not; write the template with --stream, or leave out { stream: true } of lambda.http`,
      ]);
      expect(mistakes(server, made({ front, stream }), whole)).toEqual([
        `HttpLambdaFunction does not stream, and ${name} that streams calls it; add { stream: true } to lambda.http, or write the template without --stream`,
      ]);
    },
  );

  test("is checked for each function in shape each", () => {
    const template = made({ front: "rest", shape: "each", stream });
    const bellsBellRing = lambdaHandler(declared, "bells.bell.ring");
    const streamed = lambdaHandler(declared, "bells.bell.ring", { stream });
    const { http } = streaming.exports;
    expect(mistakes(server, template, entry(http, { bellsBellRing: streamed }))).toEqual([]);
    expect(mistakes(server, template, entry(http, { bellsBellRing }))).toEqual([
      expect.stringMatching(
        /^BellsBellRingLambdaFunction does not stream, .* lambda.bellsBellRing/,
      ),
    ]);
  });

  test("is refused if it is another front than the one that is asked for, or does not stream", () => {
    expect(mistakes(server, made({}), undefined, { front: "url", stream })).toEqual([
      "--front url is given, and the template's front is http; write it with --front url, or give --check the front that it has",
      "--stream is given, and nothing in the template streams; write it with --stream",
    ]);
    expect(mistakes(server, made({ part: "data" }), undefined, { front: "rest" })).toEqual([
      expect.stringContaining("the template's front is none"),
    ]);
  });

  test("web is refused without the index.js that Lambda loads", () => {
    const refused = [
      expect.stringContaining("bundle the module that runs the container as the entry web"),
    ];
    expect(mistakes(server, made({ front: "web" }), { ...whole, hasIndex: false })).toEqual(
      refused,
    );
    expect(mistakes(server, made({ front: "web" }), { ...whole, hasIndex: true })).toEqual([]);
    expect(mistakes(server, made({ front: "rest" }), { ...whole, hasIndex: false })).toEqual([]);
  });

  test("may lack Properties", () => {
    const template = made({ front: "url" });
    const Resources = { ...template.Resources, Bare: { Type: "AWS::Lambda::Url" } };
    expect(mistakes(server, { ...template, Resources }, whole)).toEqual([]);
  });

  test("web needs the tables' variables, and a revision", () => {
    const template = made({ front: "web", part: "functions" });
    const { HttpWebFunctionRevision: _, ...others } = template.Resources;
    expect(mistakes(server, { ...template, Resources: others })).toEqual([
      "the server needs a function http, which is missing in the template",
    ]);
    const bare = { Type: "AWS::Lambda::WebFunctionRevision" };
    expect(mistakes(server, { Resources: { Revision: bare } })).toEqual([
      "the server needs a function schedule, which is missing in the template",
      "the table config is declared, but no function has the variable KEELSON_TABLE_CONFIG",
      "the table once is declared, but no function has the variable KEELSON_TABLE_ONCE",
    ]);
  });
});
