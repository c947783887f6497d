import { relative, resolve } from "node:path";
import type { BuildOptions, Metafile, OutputFile } from "esbuild";

/** Name of the entry that runs the container in a Web Function. */
export const webEntry = "web";
/** Its output, in the folder of the build. */
const isWebEntry = /^web\.[^./\\]+$/;
/** The only file that Lambda loads of a Web Function. */
export const indexName = "index.js";

/** Loads a file, as CommonJS and as an ES module: an archive may have a `package.json`. */
export function indexText(file: string): string {
  return `import(${JSON.stringify(`./${file}`)});\n`;
}

interface Built {
  readonly metafile: Metafile;
  readonly outputFiles: OutputFile[];
}

/** Adds `index.js` to a build of esbuild with the entry `web`, unless it has one. */
export function addIndex(
  { absWorkingDir: folder = process.cwd(), outdir = "" }: BuildOptions,
  { metafile, outputFiles }: Built,
): void {
  const index = resolve(folder, outdir, indexName);
  const entry = Object.entries(metafile.outputs).find(
    ([path, { entryPoint }]) =>
      entryPoint !== undefined &&
      isWebEntry.test(relative(resolve(folder, outdir), resolve(folder, path))),
  );
  if (entry === undefined || outputFiles.some(({ path }) => path === index)) return;
  const text = indexText(relative(resolve(folder, outdir), resolve(folder, entry[0])));
  const contents = new TextEncoder().encode(text);
  outputFiles.push({ path: index, contents, hash: "", text });
  metafile.outputs[relative(folder, index).replaceAll("\\", "/")] = {
    bytes: contents.byteLength,
    inputs: {},
    imports: [],
    exports: [],
  };
}
