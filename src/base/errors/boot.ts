import type { BootRule } from "./boot-rule.ts";

/** Reason why a server cannot be built. */
export interface BootProblem {
  /** Feature that declares the key; `""` for an option of the server. */
  readonly feature: string;
  /** Key, handler, route or option that has the problem. */
  readonly key: string;
  /**
   * Place of the declaration, or else of the call that built the server: `src/notes.ts:12`, relative
   * to the working directory if it is below it. Absent if it is unknown, for example in a bundle.
   */
  readonly at?: string;
  /** Broken rule. `docs/boot-problems.md` explains each under its name. */
  readonly rule: BootRule;
  readonly message: string;
  readonly fix: string;
}

/** Thrown if a server cannot be built; lists every problem (specification 7, rule 4). */
export class BootError extends Error {
  readonly problems: readonly BootProblem[];

  constructor(problems: readonly BootProblem[]) {
    const lines = problems.map(({ key, message, fix, at, rule }) => {
      const place = at === undefined ? "" : `${at}, `;
      return `  ${key}: ${message}; ${fix} (${place}docs/boot-problems.md#${rule})`;
    });
    super(
      `${problems.length} problem${problems.length === 1 ? "" : "s"} at boot\n${lines.join("\n")}`,
    );
    this.name = "BootError";
    this.problems = problems;
  }
}
