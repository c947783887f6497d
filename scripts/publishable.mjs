// Run by release.yml before it publishes: the tag has to be the version, and package.json has to name the repository that the
// workflow runs in, because npm would otherwise refuse the provenance at the very end.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const {
  GITHUB_REF_NAME: tag,
  GITHUB_REPOSITORY: name,
  GITHUB_SERVER_URL: server = "https://github.com",
} = process.env;
const { version, repository } = JSON.parse(
  readFileSync(join(import.meta.dirname, "..", "package.json"), "utf8"),
);
const url = `git+${server}/${name}.git`;
const problems = [
  ...(tag === `v${version}`
    ? []
    : [
        `the tag ${tag} is not v${version}, the version in package.json; tag with: npm run release`,
      ]),
  ...(repository?.url === url
    ? []
    : [
        `provenance needs ${url} as the repository in package.json, which has ${repository?.url}; run: npm run address -- ${server}/${name}`,
      ]),
];
for (const problem of problems) console.error(`publishable: ${problem}`);
process.exitCode = problems.length === 0 ? 0 : 1;
