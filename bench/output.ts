// Measures what checking answers costs, in a process of its own; started by `main.ts`.
import * as z from "zod";
import { lambdaHandler } from "../src/hosts/lambda/index.ts";
import { access, buildServer, defineFeature } from "../src/index.ts";
import { type Result, sideBySide } from "./measure.ts";
import { context, eventOf } from "./wrapped.ts";

const items = Array.from({ length: 20 }, (_, index) => ({
  id: `file-${index}`,
  name: `report ${index}.pdf`,
  sizeMb: index,
}));
const output = z.object({
  items: z.array(z.object({ id: z.string(), name: z.string(), sizeMb: z.number() })),
});

/** A page of twenty files, checked or not: the same handler on two servers. */
const files = defineFeature("files", (r) => {
  const handler = async () => ({ items });
  r.query("file.checked", { route: "GET /checked", access: access.everyone, output, handler });
  r.query("file.plain", { route: "GET /plain", access: access.everyone, handler });
});
const server = buildServer({ features: [files], log: { requests: false } });

function invoking(name: string) {
  const handler = lambdaHandler(server, `files.file.${name}`);
  const template = eventOf(`/${name}`);
  const expected = JSON.stringify({ items });
  return async (times: number) => {
    for (let i = 0; i < times; i++) {
      const answer = (await handler(
        { ...template, headers: { ...template.headers } },
        context,
      )) as { body?: string };
      if (answer.body !== expected) throw new Error(`not the answer: ${JSON.stringify(answer)}`);
    }
  };
}

const results: Result[] = [
  await sideBySide({
    id: "output-check",
    times: 20_000,
    ours: invoking("checked"),
    peer: invoking("plain"),
  }),
];
process.send?.(results);
process.disconnect?.();
process.exit();
