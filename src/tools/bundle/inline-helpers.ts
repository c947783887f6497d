import { basename } from "node:path/posix";
import type { OutputBundle, OutputChunk } from "rolldown";

/**
 * Copies Rolldown's helpers into the files that a cold start reads. Rolldown puts them into a
 * separate file, which costs a cold start one more lookup and read. The helpers are pure functions.
 * The copy is a function at the end of the file, and the call to it takes exactly the width of the
 * import, so that all positions in the source map remain valid.
 */
export function inlineHelpers(bundle: OutputBundle): void {
  const chunks = Object.values(bundle).filter((file) => file.type === "chunk");
  const helpers = chunks.find(({ moduleIds }) => moduleIds.join() === "\0rolldown/runtime.js");
  const [, body, exported] = /^([\s\S]*)export ?\{([^}]*)\};\s*$/.exec(helpers?.code ?? "") ?? [];
  if (helpers === undefined || body === undefined || exported === undefined) return;
  if (/^import\b/m.test(body)) return; // the helpers import something, for example for a `require`
  const made = `function keelsonHelpers(){${body}\nreturn{${exported.replaceAll(/([\w$]+) as ([\w$]+)/g, "$2:$1")}}}`;
  for (const chunk of chunks) {
    if (chunk.isEntry || chunk.name === "first" || chunk.name === "sdk")
      inline(chunk, basename(helpers.fileName), made);
  }
}

function inline(chunk: OutputChunk, name: string, made: string): void {
  const imports = [...chunk.code.matchAll(/(?<=^|;)import ?\{([^}]*)\} ?from ?"([^"]*)";/gm)];
  const found = imports.find(([, , path = ""]) => basename(path) === name);
  if (found === undefined) return;
  const { 0: statement, 1: names = "", index } = found;
  const taken = `const{${names.replaceAll(" as ", ":")}}=keelsonHelpers();`.padEnd(
    statement.length,
  );
  const rest = chunk.code.slice(index + statement.length);
  const end = /\n\/\/# sourceMappingURL=[^\n]*\s*$/.exec(rest)?.index ?? rest.length;
  chunk.code = `${chunk.code.slice(0, index)}${taken}${rest.slice(0, end).trimEnd()}\n${made}${rest.slice(end)}`;
}
