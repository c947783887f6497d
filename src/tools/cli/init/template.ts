import { cp, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** The relative path is the same in the sources and in `dist/`. */
export const packageFolder = join(import.meta.dirname, "../../../..");
/**
 * In the template's file names, a leading `_` stands for a dot, because npm omits some dotfiles.
 */
const templateFolder = join(packageFolder, "examples/starter");
const manifestName = "manifest.json";
const naming = ["README.md"];

export interface OwnManifest {
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

interface TemplateManifest {
  readonly dependencies: readonly string[];
  readonly devDependencies: readonly string[];
}

export async function writeProject(folder: string, name: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const entry of await readdir(templateFolder)) {
    if (entry === manifestName) continue;
    await cp(join(templateFolder, entry), join(folder, entry.replace(/^_/, ".")), {
      recursive: true,
    });
  }
  for (const file of naming) {
    const text = await readFile(join(folder, file), "utf8");
    await writeFile(join(folder, file), text.replaceAll("{{name}}", name));
  }
  // Safe casts: the files belong to this package.
  const own = JSON.parse(
    await readFile(join(packageFolder, "package.json"), "utf8"),
  ) as OwnManifest;
  const template = JSON.parse(
    await readFile(join(templateFolder, manifestName), "utf8"),
  ) as TemplateManifest;
  await writeFile(
    join(folder, "package.json"),
    `${JSON.stringify(manifestOf(name, template, own), undefined, 2)}\n`,
  );
}

/** Dependencies get the versions with which this version of keelson was tested. */
export function manifestOf(
  name: string,
  template: TemplateManifest,
  own: OwnManifest,
): Record<string, unknown> {
  const versions: Readonly<Record<string, string>> = {
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
  const { dependencies, devDependencies, ...rest } = template;
  return {
    name,
    ...rest,
    dependencies: versioned(dependencies),
    devDependencies: versioned(devDependencies),
  };
}
