import { expect, test } from "vitest";
import { runCommand } from "./command.ts";

const token = ["token", "--tenant", "acme", "--user", "ann"];

/** Wrong command lines, and all that is printed for them but the last line, which names the help. */
const wrongUsages: readonly (readonly [args: readonly string[], answer: string])[] = [
  [["tokens"], 'there is no command "tokens"; did you mean token?'],
  [["help", "docter"], 'there is no command "docter"; did you mean doctor?'],
  [["hlep"], 'there is no command "hlep"; did you mean help?'],
  [["deploy"], 'there is no command "deploy"'],
  [["--json"], "there is no option --json; options come after a command"],
  [["token"], "--tenant is missing; use --tenant <id>"],
  [["token", "--tenant", "acme"], "--user is missing; use --user <id>"],
  [["token", "--tenant", "", "--user", "ann"], "--tenant is missing; use --tenant <id>"],
  [
    ["token", "--tenant", "--user", "ann"],
    "--tenant needs a value; if it starts with a hyphen, use --tenant=<value>",
  ],
  [
    [...token, "--roles", "a", "b"],
    'unexpected argument "b"; separate roles by commas, without spaces',
  ],
  [[...token, "b"], 'unexpected argument "b"'],
  [[...token, "--role", "a"], "there is no option --role; did you mean --roles?"],
  [[...token, "--colour"], "there is no option --colour"],
  [[...token, "-x"], "there is no option -x"],
  [
    [...token, "--expires-in-seconds", "1h"],
    '--expires-in-seconds "1h" is not a whole number from 1; use --expires-in-seconds 3600',
  ],
  [
    [...token, "--expires-in-seconds", "0"],
    '--expires-in-seconds "0" is not a whole number from 1; use --expires-in-seconds 3600',
  ],
  [["init", "a", "b"], 'unexpected argument "b"'],
  [["init", "--no-instal"], "there is no option --no-instal; did you mean --no-install?"],
  [["init", ""], "the folder's name is empty"],
  [["doctor"], "no module is given; use keelson doctor <module>"],
  [["doctor", "nowhere.ts"], 'there is no module "nowhere.ts"'],
  [["doctor", "a.ts", "b.ts"], 'unexpected argument "b.ts"'],
  [["doctor", "a.ts", "--jsno"], "there is no option --jsno; did you mean --json?"],
  [["doctor", "a.ts", "--json=yes"], "--json takes no value"],
  [
    ["doctor", "a.ts", "--timeout-seconds", "soon"],
    '--timeout-seconds "soon" is not a whole number from 1 to 999',
  ],
  [["infra", "a.ts", "--shape", "two"], '--shape "two" is unknown; use one or each'],
  [["infra", "a.ts", "--front", "soap"], '--front "soap" is unknown; use http, web, rest or url'],
  [
    ["infra", "a.ts", "--diff", "a", "--check", "b"],
    "--diff and --check are given; use one of the two",
  ],
  [["contract"], "no action is given; use write or check"],
  [["contract", "chekc"], 'there is no action "chekc"; did you mean check?'],
  [["contract", "check"], "no module is given; use keelson contract check <module>"],
  [
    ["contract", "check", "a.ts", "--json", "--markdown"],
    "--json and --markdown are given; use one of the two",
  ],
  [["openapi"], "no module is given; use keelson openapi <module>"],
  [["openapi", "a.ts", "--spec", "2.0"], '--spec "2.0": use 3.1 or 3.2'],
  [["asyncapi", "a.ts", "--spec", "3"], "there is no option --spec"],
  [["trace"], "no module is given; use keelson trace <module> <id>"],
  [["trace", "a.ts", "!"], "the ID is not valid: use 1 to 128 letters, digits and .-_:=+/@"],
  [["outbox"], "no action is given; use list, put-back or remove"],
  [["outbox", "putback"], 'there is no action "putback"; did you mean put-back?'],
  [["outbox", "remove"], "--event is missing; use --event <id>"],
  [["steps", "list"], "no module is given; use keelson steps list <module>"],
  [["steps", "resolve", "a.ts", "id"], "say either --result <json> or --retry"],
  [["projection", "rebuild", "a.ts"], "no projection is given; name one that the module declares"],
  [["limits", "show", "a.ts"], "no tenant is given; use keelson limits show <module> <tenant>"],
  [["api-keys", "list", "a.ts"], "no tenant is given; use keelson api-keys list a.ts <tenant>"],
  [["key-ring", "rotate"], "--parameter is missing; use --parameter <name>"],
  [["key-ring", "activate", "--parameter", "p"], "--key is missing; use --key <name>"],
  [["completion"], "no action is given; use bash, zsh or fish"],
];

test.each(wrongUsages)("%j is explained in one line", async (args, answer) => {
  const printed: string[] = [];
  const complaints: string[] = [];
  const unused = () => Promise.reject(new Error("not to be called"));
  const code = await runCommand(args, {
    env: { KEELSON_AUTH_SECRET: "a secret of thirty-two bytes and more" },
    clock: { now: () => 1_700_000_000_000 },
    print: (line) => void printed.push(line),
    complain: (line) => void complaints.push(line),
    wait: unused,
    developmentSecret: unused,
  });
  const [first = ""] = args;
  const help = /there is no (command|option --json)/.test(answer) ? "" : `${first} `;
  expect({ code, printed, complaints }).toEqual({
    code: 2,
    printed: [],
    complaints: [`keelson: ${answer}`, `Run \`keelson ${help}--help\`.`],
  });
});
