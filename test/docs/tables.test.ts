import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { errorCodes } from "keelson";
import { expect, test } from "vitest";
import { allBlocks, documents, headingAnchors, root, tableUnder, textOf } from "./markdown.ts";

const sources = globSync(["src/**/*.ts", "examples/**/*.{ts,env}"], { cwd: root })
  .filter((path) => !path.endsWith(".test.ts"))
  .map((path) => readFileSync(join(root, path), "utf8"))
  .join("\n");

test("the table of error codes matches the code", () => {
  const documented = tableUnder("docs/errors-and-logs.md", "Codes").map(([code, status]) => [
    code,
    Number(status),
  ]);

  expect(documented.sort()).toEqual(Object.entries(errorCodes).sort());
});

test("exactly the error codes that keelson throws have a section on the page that problem+json links to", () => {
  const own = globSync("src/**/*.ts", { cwd: root }).filter((path) => !path.endsWith(".test.ts"));
  const code = own
    .map(textOf)
    .join("\n")
    .replaceAll(/^\s*(?:\*|\/\/).*$/gm, "");
  const patterns = [
    /new ConflictError\(\s*"(\w+)"/g,
    /extends ConflictError \{[\s\S]*?\bsuper\(\s*"(\w+)"/g,
    /new PipelineError\([^;]*?\bcode: "(\w+)"/g,
    /\.code \?\? "(\w+)"/g,
  ];
  const thrown = patterns.flatMap((pattern) =>
    [...code.matchAll(pattern)].map(([, name = ""]) => name),
  );
  // No other call names a code: what builds one of something else has to be known here.
  const built = [...code.matchAll(/new ConflictError\(\s*([^"\s][^,)]*)/g)].map(
    ([, argument]) => argument,
  );

  expect(built).toEqual([]);
  expect(new Set(thrown)).toContain("nothing_to_undo");
  expect(headingAnchors("docs/errors.md").slice(1).sort()).toEqual(
    [...new Set([...Object.keys(errorCodes), ...thrown])].sort(),
  );
});

/** The members of an interface in a source file. */
function membersOf(path: string, name: string): string[] {
  const [, body = ""] =
    new RegExp(
      `^(?:export interface|(?:export )?declare abstract class) ${name}\\b[^{]*\\{\\n([\\s\\S]*?)^\\}`,
      "m",
    ).exec(textOf(path)) ?? [];
  return [...body.matchAll(/^ {2}(?:readonly|abstract get) (\w+)\??(?::|\()/gm)].map(
    ([, member = ""]) => member,
  );
}

test("the table of buildServer options lists every option, and nothing else", () => {
  const options = membersOf("src/app/registry/options.ts", "ServerOptions");

  expect(options).toContain("isolation");
  expect(
    tableUnder("docs/hosts.md", "Options of `buildServer`")
      .map(([option = ""]) => option)
      .filter((option) => !option.includes(".")) // a member of another option
      .sort(),
  ).toEqual(options.sort());
});

test("the table of ctx lists every member, and nothing else", () => {
  const file = "src/app/handlers/pipeline-context.ts";
  const parts = ["PipelineContext", "ReadContext", "ReadMembers", "DeliveryMember"];
  const effects = ["JobMembers", "CancelMember", "EffectMembers"];
  const limits = membersOf("src/app/handlers/rate-limit.ts", "RateLimitMember");
  const members = [...[...parts, ...effects].flatMap((name) => membersOf(file, name)), ...limits];
  const rows = tableUnder("docs/handlers.md", "`ctx`").flatMap(([cell = ""]) => [
    ...cell.matchAll(/\bctx\.(\w+)/g),
  ]);

  expect(members).toContain("acrossTenants");
  expect([...new Set(rows.map(([, name]) => name))].sort()).toEqual(members.sort());
});

test("every environment variable in a document is read somewhere, and every one of keelson's is documented", () => {
  const names = /\b(?:KEELSON|AWS|LOG|POWERTOOLS)_[A-Z_]+[A-Z]\b|\bNO_COLOR\b/g;
  const named = new Set(documents.flatMap((document) => textOf(document).match(names) ?? []));
  // One row of the table stands for the names of all tables.
  const ours = new Set(sources.match(/\bKEELSON_(?!TABLE_)[A-Z_]+[A-Z]\b/g));
  const table = tableUnder("docs/hosts.md", "Environment variables").flatMap(
    ([variables = ""]) => variables.match(names) ?? [],
  );
  // `AWS_ENDPOINT_URL_${service}` is read for each service that the sources name.
  const service = (name: string) => name.split("AWS_ENDPOINT_URL_")[1];
  const isRead = (name: string) =>
    sources.includes(name) ||
    sources.includes(`"${service(name)}"`) ||
    name.startsWith("KEELSON_TABLE_");

  expect([...named].filter((name) => !isRead(name))).toEqual([]);
  expect(
    [...ours].filter((name) => !table.some((documented) => name.startsWith(documented))),
  ).toEqual([]);
});

test("every link to a file of the repository leads to an existing file", () => {
  const broken = documents.flatMap((document) =>
    [...textOf(document).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = ""]) => {
      const path = target.replace(/#.*$/, "");
      return /^https?:/.test(target) ||
        path === "" ||
        existsSync(join(root, dirname(document), path))
        ? []
        : [`${document}: ${target}`];
    }),
  );

  expect(broken).toEqual([]);
});

test("every link to a heading leads to an existing heading", () => {
  const headings = new Map(documents.map((document) => [document, headingAnchors(document)]));
  const broken = documents.flatMap((document) =>
    [...textOf(document).matchAll(/\]\(([^)#\s]*)#([^)\s]+)\)/g)].flatMap(
      ([, path = "", anchor = ""]) => {
        if (/^https?:/.test(path)) return [];
        const target = path === "" ? document : join(dirname(document), path).replaceAll("\\", "/");
        return headings.get(target)?.includes(anchor) ? [] : [`${document}: ${path}#${anchor}`];
      },
    ),
  );

  expect(broken).toEqual([]);
});

test("every public function appears in a document", () => {
  const exported = globSync(["src/index.ts", "src/{lambda,container,testing}/index.ts"], {
    cwd: root,
  }).flatMap((path) =>
    // Types are found by those who use the functions.
    [...readFileSync(join(root, path), "utf8").matchAll(/^export \{([^}]*)\}/gm)].flatMap(
      ([, names = ""]) =>
        names
          .split(",")
          .map((name) => name.trim())
          .filter((name) => name !== "" && !name.startsWith("type ")),
    ),
  );
  const text = documents
    .filter((document) => document !== "CHANGELOG.md")
    .map(textOf)
    .join("\n");

  expect(exported.length).toBeGreaterThan(20);
  expect(exported.filter((name) => !new RegExp(`\\b${name}\\b`).test(text))).toEqual([]);
});

test("the folder plan in AGENTS.md matches src/, in import order", async () => {
  const checked: string = join(root, "scripts", "layers", "plan.mjs");
  const { folders } = (await import(pathToFileURL(checked).href)) as {
    readonly folders: readonly string[];
  }; // safe: its own list
  const [plan] = allBlocks().filter(
    ({ document, language }) => document === "AGENTS.md" && language === "text",
  );
  const named = [...(plan?.code ?? "").matchAll(/^( {2,6})([a-z-]+)\/ /gm)];
  const path: string[] = [];
  const listed = named.map(([, indent = "", name = ""]) => {
    path.splice(indent.length / 2 - 1, path.length, name);
    return path.join("/");
  });
  // The wings and `config/` have no files of their own, and the rooms in `cli/`, `infra/` and `testing/` no lines of their own.
  const parents = new Set(listed.map((folder) => folder.slice(0, folder.lastIndexOf("/"))));
  const inOrder = [...folders]
    .reverse()
    .filter((folder) => folder !== "." && !/^tools\/(?:cli|infra|testing)\//.test(folder));

  expect(listed.filter((folder) => !parents.has(folder))).toEqual(inOrder);
  expect(listed.filter((folder) => !folder.includes("/")).sort()).toEqual(
    readdirSync(join(root, "src"), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
      .sort(),
  );
});
