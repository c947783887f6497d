import { expect, test } from "vitest";
import { allBlocks, type CodeBlock, codeBlocks, placeOf } from "./markdown.ts";

const diagrams = allBlocks().filter(
  ({ language, code }) => language === "mermaid" && code.startsWith("stateDiagram-v2\n"),
);

test("every state diagram uses exactly the states that it describes", () => {
  expect(diagrams.flatMap(stateProblems)).toEqual([]);
});

test.each([
  [
    "a transition to an unknown state",
    ['state "A" as a', "[*] --> a", "a --> b: ends"],
    ["a --> b: ends"],
  ],
  ["a transition from an unknown state", ['state "A" as a', "[*] --> a", "b --> a"], ["b --> a"]],
  [
    "a state that no transition leads to",
    ['state "A" as a', 'state "B" as b', "[*] --> a", "b --> a"],
    ["b"],
  ],
  ["a diagram without a beginning", ['state "A" as a', "a --> a"], ["no [*] --> state"]],
  [
    "a text that Mermaid would end early",
    ['state "A" as a', "[*] --> a: one; two"],
    ["[*] --> a: one; two", "a", "no [*] --> state"],
  ],
  ["another statement", ['state "A" as a', "[*] --> a", "note right of a"], ["note right of a"]],
])("a state diagram is refused for %s", (_case, lines, wrong) => {
  const [block] = codeBlocks(
    "docs/a.md",
    ["```mermaid", "stateDiagram-v2", ...lines, "```"].join("\n"),
  );

  expect(block && stateProblems(block)).toEqual(wrong.map((line) => `docs/a.md:2: ${line}`));
});

/** What is wrong with a state diagram: described states and transitions are all that it may have. `[*]` is begin and end. */
function stateProblems(block: CodeBlock): string[] {
  const lines = block.code
    .split("\n")
    .slice(1)
    .map((line) => line.trim());
  const states = lines.flatMap((line) => /^state "[^"]+" as (\w+)$/.exec(line)?.[1] ?? []);
  const transitions = lines.flatMap((line) => {
    const [, from, to] = /^(\w+|\[\*\]) --> (\w+|\[\*\])(?:: [^:;#]+)?$/.exec(line) ?? [];
    return from === undefined || to === undefined ? [] : [{ line, from, to }];
  });
  const isKnown = (name: string) => name === "[*]" || states.includes(name);
  const right = new Set(
    transitions.flatMap(({ line, from, to }) => (isKnown(from) && isKnown(to) ? [line] : [])),
  );
  const wrong = lines.filter((line) => !/^state "[^"]+" as \w+$/.test(line) && !right.has(line));
  const unreached = states.filter((state) => !transitions.some(({ to }) => to === state));
  const begins = transitions.some(({ from }) => from === "[*]") ? [] : ["no [*] --> state"];
  return [...wrong, ...unreached, ...begins].map((problem) => `${placeOf(block)}: ${problem}`);
}
