/** Reason why a server cannot be built. */
export interface BootProblem {
  /** Feature that declares the key; `""` for an option of the server. */
  readonly feature: string;
  /** Key, handler, route or option that has the problem. */
  readonly key: string;
  /** Broken rule, in kebab case: `bounds-order`, `duplicate-handler`. */
  readonly rule: string;
  readonly message: string;
  readonly fix: string;
}

/** Thrown if a server cannot be built; lists every problem (specification 7, rule 4). */
export class BootError extends Error {
  readonly problems: readonly BootProblem[];

  constructor(problems: readonly BootProblem[]) {
    const lines = problems.map(({ key, message, fix }) => `  ${key}: ${message}; ${fix}`);
    super(
      `${problems.length} problem${problems.length === 1 ? "" : "s"} at boot\n${lines.join("\n")}`,
    );
    this.name = "BootError";
    this.problems = problems;
  }
}
