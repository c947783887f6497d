// Stands in for Lambda's runtime: loads the handler in the same way, and requests one invocation after the other.
import { createRequire } from "node:module";
import { join } from "node:path";

const {
  LAMBDA_TASK_ROOT: root = "",
  _HANDLER: named = "",
  AWS_LAMBDA_RUNTIME_API: api,
} = process.env;
const [file, name] = named.split(".");
const load =
  process.env.LOADS_BY === "require" ? createRequire(import.meta.url) : (path) => import(path);
const ending = process.env.LOADS_BY === "require" ? "cjs" : "mjs";
const module = await load(join(root, `${file}.${ending}`));
for (;;) {
  const { event, context, traceHeader } = await (await fetch(`http://${api}/next`)).json();
  if (traceHeader === undefined) delete process.env._X_AMZN_TRACE_ID;
  else process.env._X_AMZN_TRACE_ID = traceHeader;
  const answer = await module[name](event, { ...context, getRemainingTimeInMillis: () => 30_000 });
  await fetch(`http://${api}/response`, { method: "POST", body: JSON.stringify(answer ?? null) });
}
