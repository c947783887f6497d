import { spawnSync } from "node:child_process";
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

/** Ways to complete the last of `words` in a real shell. What stands in for zsh's completion system prints the words offered. */
const shells: Readonly<Record<string, (script: string, words: readonly string[]) => string[]>> = {
  bash: (script, words) => [
    "--norc",
    "-c",
    `${script}
COMP_WORDS=(${words.map((word) => JSON.stringify(word)).join(" ")})
COMP_CWORD=${words.length - 1}
_keelson
printf "%s\\n" "\${COMPREPLY[@]}"`,
  ],
  zsh: (script, words) => [
    "-f",
    "-c",
    `compdef() { : }
_files() { : }
compadd() { shift; offer "$@" }
_describe() { offer "\${(@)\${(P@)2}%%:*}" }
offer() { print -l -- "\${(@M)@:#\${words[CURRENT]}*}" }
${script}
words=(${words.map((word) => JSON.stringify(word)).join(" ")})
CURRENT=${words.length}
_keelson`,
  ],
  fish: (script, words) => [
    "--no-config",
    "-c",
    `${script}
complete -C '${words.join(" ")}' | string split --fields 1 \\t | string match --invert package.json`,
  ],
};
// zsh and fish are tested where they are installed. bash is on every machine of CI.
const installed = Object.keys(shells).filter(
  (shell) => shell === "bash" || spawnSync(shell, ["--version"]).status === 0,
);

const cases: readonly (readonly [readonly string[], readonly string[]])[] = [
  [
    ["keelson", "o"],
    ["openapi", "outbox"],
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
  [["keelson", "tenant", "create", "steps", "--fo"], ["--force"]],
];

test
  .skipIf(process.platform === "win32")
  .each(
    installed.flatMap((shell) => cases.map(([words, names]) => [shell, words, names] as const)),
  )("%s completes %j", async (shell, words, names) => {
  const args = shells[shell]?.(await scriptFor(shell), words) ?? [];
  // A shell warns of a locale that the machine lacks.
  const env = { ...process.env, LC_ALL: "C" };
  const { stdout, stderr } = spawnSync(shell, args, { encoding: "utf8", env });

  expect(stderr).toBe("");
  expect(stdout.split("\n").filter(Boolean).sort()).toEqual([...names]);
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
  expect(fish).toContain("-n '__keelson_at 2 steps' -f -a 'list resolve'");
  expect(fish).toContain("-n '__keelson_in doctor' -l json");
});
