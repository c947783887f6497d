// For .github/workflows/docs.yml: its output `publishes` is `true` if package.json has the address of the repository, from which
// the site's base and links are derived. Otherwise it prints a notice, which GitHub shows on the page of the run.
import { appendFileSync } from "node:fs";
import { env } from "node:process";
import { readAddresses } from "./address.mjs";

const publishes = readAddresses() !== undefined;
if (!publishes)
  console.log(
    "::notice title=The site is not published::package.json has no repository; run: npm run address -- https://github.com/<owner>/<name>",
  );
if (env.GITHUB_OUTPUT !== undefined) appendFileSync(env.GITHUB_OUTPUT, `publishes=${publishes}\n`);
