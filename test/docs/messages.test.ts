import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { settlementOf } from "../../src/parts/once/settlement.ts";
import { knownMessages } from "../support/messages.ts";
import { root } from "./markdown.ts";

const known = knownMessages();
const files = globSync("src/**/*.ts", { cwd: root })
  .filter((path) => !/\.test\.ts$|-contract\.ts$/.test(path))
  .map((path) => ({
    path: path.replaceAll("\\", "/"),
    text: readFileSync(join(root, path), "utf8"),
  }));

/** How the part of a name in a template reads. */
const parts: Readonly<Record<string, readonly string[]>> = {
  // biome-ignore-start lint/suspicious/noTemplateCurlyInString: as the sources have them
  "${logPrefix}.taken": ["once.taken", "event.taken", "job.taken", "schedule.taken"],
  "${logPrefix}.conflicted": [
    "once.conflicted",
    "event.conflicted",
    "job.conflicted",
    "schedule.conflicted",
  ],
  "${logPrefix}.replayed": ["once.replayed", "event.replayed", "job.replayed", "schedule.replayed"],
  "${logPrefix}.failed": ["event.failed", "job.failed", "schedule.failed"],
  "${logPrefix}.limited": ["event.limited", "job.limited"],
  "${logPrefix}.waiting": ["event.waiting", "job.waiting"],
  "${logPrefix}.${line.message}": settled(),
  "${kind}.completed": [
    "event.completed",
    "job.completed",
    "delivery.completed",
    "schedule.completed",
    "run.completed",
  ],
  // biome-ignore-end lint/suspicious/noTemplateCurlyInString: as above
};
/** Names that are variables, by their file. */
const variables: Readonly<Record<string, readonly string[]>> = {
  "src/parts/messages/message-guard.ts line": ["message.proof_missing", "message.proof_invalid"],
  "src/hosts/container/process-life.ts msg": [
    "process.uncaught_exception",
    "process.unhandled_rejection",
  ],
  "src/app/routes/client-log.ts msg": ["uncaught.error", "unhandled.rejection"], // and whatever else a page logs
};

/** What the lines of a settlement are called, of a write and of a message. */
function settled(): string[] {
  const names = new Set<string>();
  for (const run of ["write", "message"] as const)
    for (const work of ["answered", "refused", "threw", "stopped", "timed out"] as const)
      for (const commit of ["none", "committed", "unknown"] as const)
        for (const claim of [
          "unclaimed",
          "ours",
          "lost",
          "completed",
          "fenced",
          "unrecorded",
          "theirs",
          "unknown",
        ] as const) {
          if (run === "message" && (claim === "theirs" || claim === "unknown")) continue; // that is looked for by writes alone
          const { line } = settlementOf(run, work, commit, claim);
          const prefixes = run === "write" ? ["once"] : ["event", "job", "schedule"];
          if (line !== undefined)
            for (const prefix of prefixes) names.add(`${prefix}.${line.message}`);
        }
  return [...names];
}

interface Logged {
  readonly path: string;
  readonly name: string;
  /** `undefined` where it depends. */
  readonly level: string | undefined;
}

/** Every call that logs: of something that is called a log, or by the function that a threshold is given; and every record that is made. */
function logged(): Logged[] {
  const called =
    /(?:\b(?:log|logger|report)|\))(?:\??\.(debug|info|warn|error)|\[[^\]]*(?:level|"warn")[^\]]*\])\(\s*([^,)]+)/gi;
  // The client's logger makes records that the server logs as they come.
  const made = /\blevel: "(\w+)", msg: ("[^"]+")/g;
  const notified = /\bnotify\(\s*"(\w+)",\s*([^,)]+)/g;
  return files.flatMap(({ path, text }) => {
    const code = text.replaceAll(/^\s*(?:\*|\/\/).*$/gm, "");
    const calls = [...code.matchAll(called), ...code.matchAll(notified), ...code.matchAll(made)];
    return calls.flatMap(([, level, first = ""]) =>
      namesOf(path, first.trim()).map((name) => ({ path, name, level })),
    );
  });
}

function namesOf(path: string, first: string): readonly string[] {
  const texts = [...first.matchAll(/"([a-z_]+(?:\.[a-z_]+)+)"/g)].map(([, name = ""]) => name);
  if (texts.length > 0) return texts;
  const found = first.startsWith("`") ? parts[first.slice(1, -1)] : variables[`${path} ${first}`];
  if (found === undefined)
    throw new Error(`${path}: what does ${first} stand for? Say so in this test`);
  return found;
}

test("every line that the sources log is on the page of messages, with its level", () => {
  const lines = logged();
  expect(lines.length).toBeGreaterThan(90);
  const missing = lines.filter(({ name }) => !known.has(name));
  expect(missing).toEqual([]);
  const elsewhere = lines.filter(
    ({ name, level }) => level !== undefined && !known.get(name)?.levels.includes(level),
  );
  expect(elsewhere).toEqual([]);
});

test("every message of the page is logged by the sources", () => {
  const names = new Set(logged().map(({ name }) => name));
  expect([...known.keys()].filter((name) => !names.has(name))).toEqual([]);
  expect([...known.values()].filter(({ levels }) => levels.length === 0)).toEqual([]);
});
