import { spawn } from "node:child_process";
import { once } from "node:events";
import { type CodeBlock, placeOf, root } from "./markdown.ts";

/** One command of a `console` block, and the answer that the document gives to it. */
export interface Step {
  /** `README.md:42`. */
  readonly place: string;
  readonly command: string;
  /** `…` stands for any text. */
  readonly answer: string;
}

/** The steps of a block: a command starts with `$ `, and the lines below it are its output. */
export function stepsOf(block: CodeBlock): Step[] {
  const steps: { place: string; command: string; answer: string }[] = [];
  for (const [index, line] of block.code.split("\n").entries()) {
    const last = steps.at(-1);
    if (line.startsWith("$ "))
      steps.push({
        place: placeOf({ ...block, line: block.line + index }),
        command: line.slice(2),
        answer: "",
      });
    else if (last === undefined)
      throw new Error(`${placeOf(block)}: the block does not start with a command`);
    else last.answer += last.answer === "" ? line : `\n${line}`;
  }
  return steps;
}

/** Whether the output of a command matches the document. */
export function answers({ answer }: Pick<Step, "answer">, printed: string): boolean {
  const pattern = answer.split("…").map((text) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return new RegExp(`^${pattern.join("[^]+?")}$`).test(printed.trimEnd());
}

/** Runs the commands in one shell, so that variables remain, and returns the output of each. */
export async function runSteps(
  steps: readonly Step[],
  env: Readonly<Record<string, string | undefined>>,
  port: number,
): Promise<string[]> {
  const mark = "keelson-docs-end-of-answer";
  const script = steps.map(
    ({ command }) =>
      `${command.replaceAll("localhost:3000", `localhost:${port}`)}\nprintf '\\n%s\\n' ${mark}`,
  );
  const shell = spawn("bash", ["-u"], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  let printed = "";
  let complaints = "";
  shell.stdout.on("data", (chunk: Buffer) => {
    printed += chunk.toString();
  });
  shell.stderr.on("data", (chunk: Buffer) => {
    complaints += chunk.toString();
  });
  shell.stdin.end(`${script.join("\n")}\n`);
  await once(shell, "close");
  const outputs = printed.split(`\n${mark}\n`);
  if (outputs.length !== steps.length + 1)
    throw new Error(`the shell ended early: ${printed} ${complaints}`);
  return outputs.slice(0, -1);
}
