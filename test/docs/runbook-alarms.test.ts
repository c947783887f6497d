import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { z } from "zod";
import { defineFeature } from "../../src/app/features/feature.ts";
import { runbookAddress } from "../../src/base/metrics/runbook.ts";
import { type Options, sheds, spades, templateOf } from "../support/server-templates.ts";
import { root, textOf } from "./markdown.ts";
import { headings, queriesOf, runbookPages } from "./runbook-pages.ts";

const handler = async () => undefined;
const input = z.object({});
const rest = defineFeature("rest", (r) => {
  r.table("beds", { partitionKey: "pk", tenant: true });
  r.job("bed.weed", { input, handler });
  r.receive("seed.sold", { source: "shop", detailType: "Sold", input, handler });
});
const features = [spades, sheds, rest];
const measured = { metrics: {} };

/** Every alarm that a template can have, with its description. */
const alarms = new Map<string, string>();
for (const [options, server] of [
  [{}, undefined],
  [{ limited: 100 }, measured],
  [{ fair: "send" }, measured],
  [{ front: "web" }, measured],
  [{ front: "rest" }, undefined],
  [{ front: "url" }, undefined],
] satisfies readonly [Options, object | undefined][]) {
  for (const { Type, Properties } of Object.values(
    templateOf(features, options, server).Resources,
  )) {
    if (Type !== "AWS::CloudWatch::Alarm") continue;
    // Safe: `alarmPart` writes both members.
    const { AlarmName, AlarmDescription } = Properties as {
      readonly AlarmName: { readonly "Fn::Sub": string };
      readonly AlarmDescription: string;
    };
    alarms.set(AlarmName["Fn::Sub"].replace(/^\$\{NamePrefix\}-/, ""), AlarmDescription);
  }
}

/** A row of docs/runbook.md: the names of alarms, and their page. */
const rowOfAlarms = /^\| (`[^|]*) \| \[[^\]]*\]\(runbook\/([\w-]+)\.md\) \|$/gm;

function pageOf(description: string): string | undefined {
  const [, page] = /^[A-Z][^.;]*\. See (\S+)\.md$/.exec(description) ?? [];
  return page?.startsWith(runbookAddress) ? page.slice(runbookAddress.length) : undefined;
}

test("the templates have every alarm of docs/alarms.md, and no other", () => {
  expect(alarms.size).toBeGreaterThan(25);
  expect([...alarms.keys()].sort()).toEqual([...rowsOfAlarms().keys(), "rate-limited"].sort());
});

test("each description is one sentence and the address of a page of the runbook that names the alarm", () => {
  const wrong = [...alarms].filter(([name, description]) => {
    const page = runbookPages.find((one) => one.name === pageOf(description));
    return page?.alarms.includes(name) !== true;
  });

  expect(wrong).toEqual([]);
});

test("each alarm that a page names exists", () => {
  const named = runbookPages.flatMap(({ name, alarms }) => alarms.map((alarm) => [name, alarm]));

  expect(named.filter(([, alarm = ""]) => !alarms.has(alarm))).toEqual([]);
  expect(new Set(named.map(([, alarm]) => alarm)).size).toBe(alarms.size);
});

test("docs/alarms.md leads from each alarm to the page of its description first", () => {
  for (const [name, pages] of rowsOfAlarms())
    expect(pages[0], name).toBe(pageOf(alarms.get(name) ?? ""));
});

test("docs/runbook.md leads from each alarm to the page of its description", () => {
  const [, section = ""] = textOf("docs/runbook.md").split("\n## Alarms\n");
  const rows = [...(section.split("\n## ")[0] ?? "").matchAll(rowOfAlarms)].flatMap(
    ([, names = "", page]) => namesIn(names).map((name) => [name, page] as const),
  );

  expect(rows.sort()).toEqual(
    [...alarms].map(([name, description]) => [name, pageOf(description)] as const).sort(),
  );
});

test("the address leads into docs/ of the installed package, which contains docs/", () => {
  const { name, files } = JSON.parse(textOf("package.json"));

  expect(runbookAddress).toBe(`node_modules/${name}/docs/runbook/`);
  expect(files).toContain("docs");
  expect(existsSync(join(root, "docs/runbook"))).toBe(true);
});

test("the symptoms of docs/runbook.md lead to each page once", () => {
  const [, table = ""] = textOf("docs/runbook.md").split(/^## /m);
  const linked = [...table.matchAll(/\(runbook\/([\w-]+)\.md\)/g)].map(([, name]) => name);

  expect(linked.sort()).toEqual(runbookPages.map(({ name }) => name));
});

test.each(runbookPages)(
  "$name has the five headings in order, and a query that confirms it",
  (page) => {
    const found = [...page.text.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading);

    expect(found).toEqual(headings);
    expect(queriesOf(page).map(({ heading }) => heading)).toContain("Confirm it");
    expect(page.text).toMatch(/^# .*\n\n\*\*Alarms\*\*: /);
  },
);

/** Alarms in the tables of docs/alarms.md, with the pages that their rows lead to. */
function rowsOfAlarms(): ReadonlyMap<string, readonly string[]> {
  const [table = ""] = textOf("docs/alarms.md").split("\n## Access log");
  const rows = [...table.matchAll(/^\| (`[^|]*) \|[^|]*\|([^|]*)\|$/gm)];
  return new Map(
    rows.flatMap(([, names = "", links = ""]) => {
      const pages = [...links.matchAll(/\(runbook\/([\w-]+)\.md\)/g)].map(([, page = ""]) => page);
      return namesIn(names).map((name) => [name, pages] as const);
    }),
  );
}

function namesIn(cell: string): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
}
