import { expect, test } from "vitest";
import { textOf } from "./markdown.ts";

const text = textOf("docs/decisions.md");
const [introduction = "", ...entries] = text.split(/^(?=#{2,} )/m);

test("every decision has a date, a topic of the list, a title of its own, and a text", () => {
  const topics = [...introduction.replace(/^[\s\S]*Topics:/, "").matchAll(/`([a-z-]+)`/g)].map(
    ([, topic]) => topic,
  );
  const read = entries.map((entry) =>
    /^## \d{4}-\d{2}-\d{2} ([a-z-]+): (.+)\n(?!\n)[\s\S]+\n$/.exec(entry),
  );
  const titles = read.map((match) => match?.[2]);

  expect(entries.filter((_entry, index) => !topics.includes(read[index]?.[1]))).toEqual([]);
  expect(titles.filter((title, index) => titles.indexOf(title) !== index)).toEqual([]);
  expect(topics.length).toBeGreaterThan(10);
});

test("no decision is written as a bullet of another", () => {
  expect(text.split("\n").filter((line) => /^- /.test(line))).toEqual([]);
});
