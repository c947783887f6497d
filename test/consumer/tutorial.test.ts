import { mkdirSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, inject, test } from "vitest";
import type { MiniStack } from "../deploy/mini-stack.ts";
import { textOf, tutorialPages } from "../docs/markdown.ts";
import { startAccount } from "./support/account.ts";
import { projectIn } from "./support/project.ts";
import { Reader, tutorialSteps } from "./support/reader.ts";

// The steps of the tutorial, taken from its pages: files are saved and commands run in their order, in one project that
// starts as an empty folder. The output of each command must be the output on the page, where … stands for any text.

describe.skipIf(process.platform === "win32")("the tutorial", () => {
  let reader: Reader;
  let account: MiniStack | undefined;
  beforeAll(async () => {
    const { tarball, projects } = inject("consumer");
    const directory = mkdtempSync(join(projects, "tutorial-"));
    const folder = join(directory, "empty");
    mkdirSync(folder);
    await projectIn(directory).run("tar", ["-xzf", tarball]);
    // This version is not in any registry, so `npm install` gets the tarball, and `npx keelson` runs it in an empty folder.
    const others = `PATH=\${PATH#"${join(directory, "bin")}:"}`;
    reader = new Reader(folder, {
      npm: `#!/bin/sh\n${others}\n[ "$1" = install ] && set -- "$@" "keelson@file:${tarball}"\nexec npm "$@"\n`,
      npx: `#!/bin/sh\n[ -e node_modules ] || exec node "${directory}/package/dist/tools/cli/main.js" init "$3" --yes\n${others}\nexec npx "$@"\n`,
    });
  });
  afterAll(async () => {
    await reader?.close();
    await account?.stop();
  });

  /** Puts the credentials of an account on this machine into the shell. The names of its APIs are unknown to DNS. */
  const enter = async ({ env }: MiniStack) => {
    const { port } = new URL(String(env["AWS_ENDPOINT_URL"]));
    const names = Object.keys(env).filter((name) => name.startsWith("AWS_"));
    for (const name of [...names, "PATH"]) await reader.prepare(`export ${name}='${env[name]}'`);
    await reader.prepare(
      [
        `curl() { local all=() each; for each in "$@"; do each="\${each/#https:/http:}";`,
        `all+=("\${each/.us-east-1.amazonaws.com/.localhost:${port}}"); done;`,
        `command curl --resolve "*:${port}:127.0.0.1" "\${all[@]}"; }`,
      ].join(" "),
    );
  };

  test.each(tutorialPages)(
    "the steps of %s print the output that it shows",
    async (page) => {
      if (textOf(page).includes("$ aws ")) {
        account = await startAccount();
        await enter(account);
      }
      for (const step of tutorialSteps(page)) await reader.follow(step);
    },
    600_000,
  );
});
