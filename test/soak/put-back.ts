// Loaded into a process with `--import`: puts back the defect that SOAK_DEFECT names.
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { defectOf, isDefectName } from "./defects.ts";

const name = process.env["SOAK_DEFECT"] ?? "";
if (isDefectName(name)) {
  const { module, now, once } = defectOf(name);
  const patched = new URL(`../../${module}`, import.meta.url).href;
  registerHooks({
    load: (url, context, nextLoad) => {
      if (url !== patched) return nextLoad(url, context);
      const source = readFileSync(fileURLToPath(url), "utf8");
      if (!source.includes(now)) throw new Error(`${module} has changed: ${now} is not in it`);
      return {
        format: "module-typescript",
        source: source.replace(now, () => once),
        shortCircuit: true,
      };
    },
  });
}
