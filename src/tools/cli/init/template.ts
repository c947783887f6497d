import { cp, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** The relative path is the same in the sources and in `dist/`. */
export const packageFolder = join(import.meta.dirname, "../../../..");
/** In its file names, a leading `_` stands for a dot, because npm omits some dotfiles. */
const templateFolder = join(packageFolder, "examples/starter");
const manifestName = "manifest.json";

type Versions = Readonly<Record<string, string>>;

interface OwnManifest {
  readonly version: string;
  readonly dependencies?: Versions;
  readonly peerDependencies?: Versions;
  readonly devDependencies?: Versions;
}

interface TemplateManifest {
  readonly dependencies: readonly string[];
  readonly devDependencies: readonly string[];
}

export async function writeProject(folder: string, name: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const entry of await readdir(templateFolder)) {
    if (entry === manifestName) continue;
    const copy = join(folder, entry.replace(/^_/, "."));
    await cp(join(templateFolder, entry), copy, { recursive: true });
  }
  const readme = join(folder, "README.md");
  await writeFile(readme, (await readFile(readme, "utf8")).replaceAll("{{name}}", name));
  // Safe casts: the files belong to this package.
  const own = (await readJson(join(packageFolder, "package.json"))) as OwnManifest;
  const template = (await readJson(join(templateFolder, manifestName))) as TemplateManifest;
  const manifest = JSON.stringify(manifestOf(name, template, own), undefined, 2);
  await writeFile(join(folder, "package.json"), `${manifest}\n`);
}

async function readJson(path: string): Promise<unknown> {
  return JSON.parse(await readFile(path, "utf8"));
}

/** Dependencies get the versions with which this version of keelson was tested. */
export function manifestOf(
  name: string,
  { dependencies, devDependencies, ...rest }: TemplateManifest,
  own: OwnManifest,
): Record<string, unknown> {
  const versions: Versions = {
    ...own.dependencies,
    ...own.peerDependencies,
    ...own.devDependencies, // last, because these are exact
    keelson: `^${own.version}`,
  };
  const versioned = (names: readonly string[]) =>
    Object.fromEntries(
      names.map((dependency) => {
        const version = versions[dependency];
        if (version === undefined)
          throw new Error(`keelson's package.json has no version of ${dependency}`);
        return [dependency, version];
      }),
    );
  return {
    name,
    ...rest,
    dependencies: versioned(dependencies),
    devDependencies: versioned(devDependencies),
  };
}
