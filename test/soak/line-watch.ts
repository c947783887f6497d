import type { Findings } from "./findings.ts";
import type { Tenants } from "./tenants.ts";

/** Searches what processes print. Lines are not kept. */
export interface LineWatch {
  readonly lines: number;
  line(text: string): void;
}

export function watchLines(tenants: Tenants, findings: Findings): LineWatch {
  const watch = {
    lines: 0,
    line: (text: string) => {
      watch.lines += 1;
      if (tenants.numbersIn(text).size > 1)
        findings.add("no line has the IDs of two tenants", text);
      if (text.includes("MaxListenersExceededWarning"))
        findings.add("no process warned of leaked listeners", text);
    },
  };
  return watch;
}
