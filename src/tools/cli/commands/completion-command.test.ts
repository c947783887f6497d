import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { runCommand } from "../command.ts";

async function scriptFor(shell: string) {
  const out: string[] = [];
  const unused = () => Promise.reject(new Error("not to be called"));
  const code = await runCommand(["completion", shell], {
    env: {},
    clock: { now: () => 0 },
    print: (line) => void out.push(line),
    complain: (line) => void out.push(line),
    wait: unused,
    developmentSecret: unused,
  });
  expect(code).toBe(0);
  return out.join("\n");
}

/** Completes the last of `words` in a real bash. */
async function completed(...words: string[]) {
  const script = `${await scriptFor("bash")}
COMP_WORDS=(${words.map((word) => JSON.stringify(word)).join(" ")})
COMP_CWORD=${words.length - 1}
_keelson
printf "%s\\n" "\${COMPREPLY[@]}"`;
  const printed = execFileSync("bash", ["--norc", "-c", script], { encoding: "utf8" });
  return printed.split("\n").filter(Boolean);
}

test.skipIf(process.platform === "win32").each<[string[], string[]]>([
  [
    ["keelson", "o"],
    ["outbox", "openapi"],
  ],
  [
    ["keelson", "--"],
    ["--help", "--version"],
  ],
  [["keelson", "help", "tr"], ["trace"]],
  [
    ["keelson", "steps", ""],
    ["list", "resolve"],
  ],
  [["keelson", "doctor", "--j"], ["--json"]],
  [["keelson", "doctor", "package.j"], []],
  [["keelson", "init", "--no"], ["--no-install"]],
])("bash completes %j", async (words, names) => {
  expect((await completed(...words)).sort()).toEqual([...names].sort());
});

test("bash itself completes files, and takes no command for a folder of the same name", async () => {
  const script = await scriptFor("bash");
  expect(script).toMatch(/\ncomplete -o bashdefault -o default -F _keelson keelson$/);
});

test("zsh and fish get commands with their summaries, actions and options", async () => {
  const zsh = await scriptFor("zsh");
  expect(zsh).toContain("    'doctor:checks the resources of a server'");
  expect(zsh).toContain("    openapi) actions=(); options=(--out --spec --help) ;;");
  expect(zsh).toMatch(/'contract:locks a server'\\''s contract/);
  const fish = await scriptFor("fish");
  expect(fish).toContain("-f -a doctor -d 'checks the resources of a server'");
  expect(fish).toContain("not __fish_seen_subcommand_from list resolve' -f -a 'list resolve'");
  expect(fish).toContain("'__fish_seen_subcommand_from doctor' -l json");
});
