import { expect, test } from "vitest";
import { textOf } from "./markdown.ts";

const text = textOf("docs/decisions.md");
const [, ...topics] = text.split(/^(?=## )/m);

/** The decisions of a topic, each with its continuation lines. */
function decisionsOf(topic: string): readonly string[] {
  return topic.split(/^(?=- )/m).slice(1);
}

test("every topic has its own title and decisions", () => {
  const titles = topics.map((topic) => topic.split("\n")[0]);

  expect(new Set(titles).size).toBe(titles.length);
  expect(topics.length).toBeGreaterThan(10);
  expect(topics.filter((topic) => decisionsOf(topic).length === 0)).toEqual([]);
});

test("every decision takes one or two lines, and the page takes at most 200", () => {
  const long = topics
    .flatMap(decisionsOf)
    .filter((decision) => decision.trimEnd().split("\n").length > 2);

  expect(long).toEqual([]);
  expect(text.trimEnd().split("\n").length).toBeLessThanOrEqual(200);
  expect(text.split("\n").filter((line) => line.length > 160)).toEqual([]);
});
