// `npm run address -- https://github.com/owner/name`: sets the address of the repository, from which everything else that names it
// is derived: the home page, the tracker, the links of the site. Until it is set, nothing names one, and a release is refused.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const usage = `npm run address -- https://github.com/<owner>/<name>

Sets repository, homepage and bugs in package.json. The site's links and its base are derived from them.

  --help  print this`;
const manifest = join(import.meta.dirname, "..", "package.json");

/**
 * Returns the addresses of a repository on GitHub.
 * @param {string} url - such as `https://github.com/owner/name`
 */
export function addressesOf(url) {
  const [, owner, name] =
    /^https:\/\/github\.com\/([\w-]+)\/([\w.-]+?)(?:\.git|\/)?$/.exec(url) ?? [];
  if (owner === undefined)
    throw new Error(
      `${url} is not the address of a repository, such as https://github.com/owner/name`,
    );
  const repository = `https://github.com/${owner}/${name}`;
  return {
    repository: { type: "git", url: `git+${repository}.git` },
    homepage: `https://${owner.toLowerCase()}.github.io/${name}/`,
    bugs: { url: `${repository}/issues` },
    /** Prefix of a path for reading a file, and for editing it. */
    files: `${repository}/blob/main/`,
    edit: `${repository}/edit/main/`,
    siteBase: `/${name}/`,
  };
}

/** Returns the addresses that package.json determines, undefined until `npm run address` has set one. */
export function readAddresses(file = manifest) {
  const { repository } = JSON.parse(readFileSync(file, "utf8"));
  return repository === undefined ? undefined : addressesOf(repository.url.replace(/^git\+/, ""));
}

function setAddress(url) {
  const { repository, homepage, bugs } = addressesOf(url);
  const next = { ...JSON.parse(readFileSync(manifest, "utf8")), repository, homepage, bugs };
  writeFileSync(manifest, `${JSON.stringify(next, undefined, 2)}\n`);
  console.log(`address: package.json names ${url}, its issues, and ${homepage}`);
}

if (import.meta.main) {
  const [url, ...others] = process.argv.slice(2);
  try {
    if (url === "--help" || url === "-h") console.log(usage);
    else if (url === undefined || others.length > 0)
      throw new Error(`expected one address\n\n${usage}`);
    else setAddress(url);
  } catch (error) {
    console.error(`address: ${error.message}`);
    process.exitCode = 1;
  }
}
