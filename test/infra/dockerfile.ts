import { readFileSync } from "node:fs";
import { join } from "node:path";
import ignore from "@balena/dockerignore";
import {
  DockerfileParser,
  ModifiableInstruction,
  type Instruction as Parsed,
} from "dockerfile-ast";

/** The root of the repository, which is the context of the build. */
export const root = join(import.meta.dirname, "../..");

/** One instruction of a Dockerfile. */
export interface Instruction {
  readonly keyword: string;
  /** Its flags, `from` of `--from=build` for example. */
  readonly flags: Readonly<Record<string, string>>;
  /** Arguments after the flags, as written, with joined lines. */
  readonly text: string;
}

/** One stage of a Dockerfile. */
export interface Stage {
  readonly name: string;
  /** An earlier stage, or an image. */
  readonly base: string;
  /** Base images of the stages. */
  readonly inherited: readonly Instruction[];
  readonly instructions: readonly Instruction[];
}

/** The stages of the repository's Dockerfile, in their order. */
export function readStages(
  text = readFileSync(join(root, "Dockerfile"), "utf8"),
): readonly Stage[] {
  const stages: (Stage & { instructions: Instruction[] })[] = [];
  for (const instruction of DockerfileParser.parse(text).getInstructions()) {
    const one = {
      keyword: instruction.getKeyword(),
      flags: flagsOf(instruction),
      text: (instruction.getArgumentsContent() ?? "").replace(/\\\n\s*/g, " ").trim(),
    };
    if (one.keyword !== "FROM") stages.at(-1)?.instructions.push(one);
    else {
      const [base = "", , name = String(stages.length)] = words(one.text);
      stages.push({
        name,
        base,
        inherited: allOf(stages.find((stage) => stage.name === base)),
        instructions: [],
      });
    }
  }
  return stages;
}

/** All that a stage says, and the stages that it is built on; the image is the last stage. */
export function allOf(stage: Stage | undefined): readonly Instruction[] {
  return stage === undefined ? [] : [...stage.inherited, ...stage.instructions];
}

/** Instructions about the process of an image; the last one wins. */
export function last(instructions: readonly Instruction[], keyword: string): string | undefined {
  return instructions.findLast((instruction) => instruction.keyword === keyword)?.text;
}

/** The command of an instruction in exec form. */
export function execForm(text: string | undefined): string[] {
  const command: unknown = JSON.parse(text?.replace(/^CMD\s+/, "") ?? "");
  if (Array.isArray(command) && command.every((part) => typeof part === "string")) return command;
  throw new Error(`${text} is not in exec form`);
}

/** The words of an instruction. */
export function words(text: string): string[] {
  return text.trim().split(/\s+/);
}

/** Says what .dockerignore keeps out of the context, by the path from its root. */
export function dockerIgnore(): (path: string) => boolean {
  const rules = ignore.default().add(readFileSync(join(root, ".dockerignore"), "utf8"));
  return (path) => rules.ignores(path);
}

function flagsOf(instruction: Parsed): Record<string, string> {
  const flags = instruction instanceof ModifiableInstruction ? instruction.getFlags() : [];
  return Object.fromEntries(flags.map((flag) => [flag.getName(), flag.getValue() ?? ""]));
}
