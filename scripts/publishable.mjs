// What release.yml asks before it publishes: that the tag is the version, and that package.json names the repository that the
// workflow runs in, without which npm refuses the provenance after everything else is done.
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
        `provenance needs "repository": { "type": "git", "url": "${url}" } in package.json; it has ${JSON.stringify(repository)}`,
      ]),
];
for (const problem of problems) console.error(`publishable: ${problem}`);
process.exitCode = problems.length === 0 ? 0 : 1;
