// Writes the same 60 features with 480 events and jobs twice: with handles, and with the names of before, typed by interfaces.
import { readFileSync } from "node:fs";

const features = Array.from({ length: 60 }, (_, index) => index);
const each = [0, 1, 2, 3];
const nameOf = (feature: number) => `f${feature}`;
/** The feature whose events and jobs a feature uses. */
const used = (feature: number) => (feature + 1) % features.length;

function schemasOf(feature: number): string {
  const member = (kind: string, n: number) =>
    `const ${kind}${n} = z.object({ id: z.string(), ${kind}${feature}x${n}: z.number(), tags: z.array(z.string()).optional() });`;
  return each.flatMap((n) => [member("event", n), member("job", n)]).join("\n");
}

const payload = (kind: string, feature: number, n: number) =>
  `{ id: "1", ${kind}${feature}x${n}: 1 }`;

/** Modules by name: each feature's declarations, and a feature that uses those of the next one. */
export function handleModules(): Readonly<Record<string, string>> {
  return modulesOf((feature) => {
    const declared = `import { defineFeature } from "keelson";
import { z } from "zod";
${schemasOf(feature)}
export const ${nameOf(feature)} = defineFeature("${nameOf(feature)}", (r) => ({
${each.map((n) => `  event${n}: r.event("thing.event${n}-${feature}", event${n}),`).join("\n")}
${each.map((n) => `  job${n}: r.job("thing.job${n}", { input: job${n}, handler: async (ctx, { id }) => ctx.log.info(id) }),`).join("\n")}
}));
`;
    const other = nameOf(used(feature));
    const uses = `import { defineFeature } from "keelson";
import { ${other} } from "./${other}.ts";
export const uses = defineFeature("uses-${nameOf(feature)}", (r) => {
${each
  .map(
    (n) => `  r.on(${other}.event${n}, { name: "use-${n}", handler: async (ctx, { payload }) => {
    payload.event${used(feature)}x${n}.toFixed();
    await ctx.enqueue(${other}.job${n}, ${payload("job", used(feature), n)});
    await ctx.publish(${other}.event${n}, ${payload("event", used(feature), n)});
  } });`,
  )
  .join("\n")}
});
`;
    return { declared, uses };
  });
}

export function interfaceModules(): Readonly<Record<string, string>> {
  return modulesOf((feature) => {
    const declared = `import { defineFeature } from "./former.ts";
import { z } from "zod";
${schemasOf(feature)}
declare module "./former.ts" {
  interface Events {
${each.map((n) => `    "thing.event${n}-${feature}": z.output<typeof event${n}>;`).join("\n")}
  }
  interface Jobs {
${each.map((n) => `    "${nameOf(feature)}.thing.job${n}": z.input<typeof job${n}>;`).join("\n")}
  }
}
export const ${nameOf(feature)} = defineFeature("${nameOf(feature)}", (r) => {
${each.map((n) => `  r.event("thing.event${n}-${feature}", event${n});`).join("\n")}
${each.map((n) => `  r.job("thing.job${n}", { input: job${n}, handler: async (ctx, { id }) => ctx.log.info(id) });`).join("\n")}
});
`;
    const other = used(feature);
    const uses = `import { defineFeature } from "./former.ts";
export const uses = defineFeature("uses-${nameOf(feature)}", (r) => {
${each
  .map(
    (n) => `  r.on("thing.event${n}-${other}", "use-${n}", async (ctx, { payload }) => {
    payload.event${other}x${n}.toFixed();
    await ctx.enqueue("${nameOf(other)}.thing.job${n}", ${payload("job", other, n)});
    await ctx.publish("thing.event${n}-${other}", ${payload("event", other, n)});
  });`,
  )
  .join("\n")}
});
`;
    return { declared, uses };
  });
}

function modulesOf(
  write: (feature: number) => { readonly declared: string; readonly uses: string },
): Readonly<Record<string, string>> {
  const modules: Record<string, string> = {};
  for (const feature of features) {
    const { declared, uses } = write(feature);
    modules[`${nameOf(feature)}.ts`] = declared;
    modules[`uses-${nameOf(feature)}.ts`] = uses;
  }
  const imports = Object.keys(modules).map((file) => `import "./${file}";`);
  const former = readFileSync(new URL("former.ts", import.meta.url), "utf8");
  return { ...modules, "former.ts": former, "client.ts": `${imports.join("\n")}\n` };
}
