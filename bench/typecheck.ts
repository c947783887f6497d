import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import openapiTS, { astToString } from "openapi-typescript";
import { type Result, result } from "./measure.ts";
import { handleModules, interfaceModules } from "./typed-messages.ts";
import * as routes from "./typed-routes.ts";

const root = new URL("..", import.meta.url).pathname;
/** The compiler of this repository, and the last one that is written in TypeScript. */
const compilers = {
  ts7: join(root, "node_modules/typescript/bin/tsc"),
  ts5: join(root, "bench/node_modules/typescript/bin/tsc"),
};
const rounds = { ts7: 7, ts5: 3 };
const kinds = [
  ...(["openapi", "inferred", "hono", "inferred-declared", "hono-declared"] as const),
  ...(["handles", "interfaces"] as const),
];
type Kind = (typeof kinds)[number];

/** What one check took. */
interface Check {
  readonly ms: number;
  readonly instantiations: number;
}

/**
 * How long the compiler takes for a file that makes 30 calls of a server with 300 routes: with types from the OpenAPI document,
 * with types inferred from the server's sources or its declarations, and with Hono's client of either. Also how many
 * instantiations 480 events and jobs of 60 features take as handles, beside the names of before, which interfaces typed.
 */
export async function typecheckResults(): Promise<Result[]> {
  const folder = mkdtempSync(join(root, "bench/.keelson-")); // where its imports find packages
  try {
    const made = await writeProjects(folder);
    const ts7 = inTurns("ts7", folder, kinds);
    const ts5 = inTurns("ts5", folder, ["openapi", "inferred", "hono", "handles", "interfaces"]);
    return [
      made,
      contest("typecheck-hono", "ms", ts7.openapi, ts7.hono),
      contest("typecheck-inferred", "ms", ts7.openapi, ts7.inferred),
      contest("typecheck-hono-declared", "ms", ts7.openapi, ts7["hono-declared"]),
      contest("typecheck-inferred-declared", "ms", ts7.openapi, ts7["inferred-declared"]),
      contest("typecheck-hono-ts5", "ms", ts5.openapi, ts5.hono),
      contest("typecheck-inferred-ts5", "ms", ts5.openapi, ts5.inferred),
      contest("instantiations-hono", "instantiations", ts7.openapi, ts7.hono),
      contest("instantiations-inferred", "instantiations", ts7.openapi, ts7.inferred),
      contest("typecheck-handles", "instantiations", ts7.handles, ts7.interfaces),
      contest("typecheck-handles-ts5", "instantiations", ts5.handles, ts5.interfaces),
    ];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

type Checks = Readonly<Record<Kind, Check[]>>;

/** Checks each project once to warm the disk, then in turns. */
function inTurns(
  compiler: keyof typeof compilers,
  folder: string,
  projects: readonly Kind[],
): Checks {
  // Safe: it has one list per kind.
  const checks = Object.fromEntries(kinds.map((kind) => [kind, []])) as unknown as Checks;
  for (let round = -1; round < rounds[compiler]; round++) {
    for (const project of projects) {
      const check = checked(compilers[compiler], join(folder, project));
      if (round >= 0) checks[project].push(check);
    }
  }
  return checks;
}

/** Writes the projects; the result is how long it takes to make what the client's types are read from. */
async function writeProjects(folder: string): Promise<Result> {
  const schemas = routes.schemasModule();
  const project = (name: Kind, files: Readonly<Record<string, string>>) => {
    const directory = join(folder, name);
    mkdirSync(directory, { recursive: true });
    for (const [path, text] of Object.entries(files)) writeFileSync(join(directory, path), text);
    const options = {
      noEmit: true,
      strict: true,
      skipLibCheck: true,
      allowImportingTsExtensions: true,
      types: [],
    };
    const compilerOptions = {
      ...options,
      target: "es2022",
      lib: ["es2022", "dom"],
      module: "esnext",
      moduleResolution: "bundler",
      paths: { keelson: [join(root, "dist/index.d.ts")] },
    };
    writeFileSync(
      join(directory, "tsconfig.json"),
      JSON.stringify({ compilerOptions, files: ["client.ts"] }),
    );
    return directory;
  };
  const clients = { inferred: routes.inferredClient(), hono: routes.honoClient() };
  const inferred = project("inferred", {
    "schemas.ts": schemas,
    "server.ts": routes.inferredServer(),
    "client.ts": clients.inferred,
  });
  const hono = project("hono", {
    "schemas.ts": schemas,
    "server.ts": routes.honoServer(),
    "client.ts": clients.hono,
  });
  project("handles", handleModules());
  project("interfaces", interfaceModules());
  const schemasOf = await import(join(inferred, "schemas.ts"));
  const types = async () => {
    const document = JSON.stringify(routes.documentOf(schemasOf));
    project("openapi", {
      "api.d.ts": astToString(await openapiTS(document)),
      "client.ts": routes.openapiClient(),
    }); // throws what is wrong
  };
  const declarations = async (name: "inferred" | "hono", source: string) => {
    const declared = project(`${name}-declared`, {
      "client.ts": clients[name].replace("./server.ts", "./server.js"),
    });
    const emit = [
      "--singleThreaded",
      "--noEmit",
      "false",
      "--declaration",
      "--emitDeclarationOnly",
      "--outDir",
      declared,
    ];
    execFileSync(process.execPath, [compilers.ts7, "-p", source, ...emit], { stdio: "inherit" });
  };
  const made = { types: [] as number[], hono: [] as number[] };
  for (let round = 0; round < rounds.ts5; round++) {
    made.types.push(await duration(types));
    made.hono.push(await duration(() => declarations("hono", hono)));
  }
  await declarations("inferred", inferred);
  return result({
    id: "client-types-made",
    ours: fastest(made.types),
    peer: fastest(made.hono),
    unit: "ms",
  });
}

async function duration(work: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** What else the machine does can only add. */
function fastest(taken: readonly number[]): number {
  return Math.round(Math.min(...taken));
}

/** Checks a project in a process of its own. TypeScript 7 in one thread: how many there are differs from machine to machine. */
function checked(tsc: string, project: string): Check {
  const threads = tsc === compilers.ts7 ? ["--singleThreaded"] : [];
  const output = execFileSync(
    process.execPath,
    [tsc, "-p", project, "--extendedDiagnostics", ...threads],
    { encoding: "utf8" },
  );
  const figure = (name: string) =>
    Number(new RegExp(`^${name}: +([\\d.]+)`, "m").exec(output)?.[1]);
  return { ms: figure("Total time") * 1_000, instantiations: figure("Instantiations") };
}

function contest(
  id: string,
  unit: "ms" | "instantiations",
  ours: readonly Check[],
  peer: readonly Check[],
): Result {
  const of = (checks: readonly Check[]) => fastest(checks.map((check) => check[unit]));
  return result({ id, ours: of(ours), peer: of(peer), unit });
}
