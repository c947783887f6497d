/** A pure core: the mutated files, and the tests that have to fail. Paths below src; if a file moves, change its line here. */
export interface Core {
  readonly sources: readonly string[];
  readonly tests: readonly string[];
}

export const cores: Readonly<Record<string, Core>> = {
  cascade: {
    sources: ["parts/config/read/cascade.ts"],
    tests: ["parts/config/read/cascade.test.ts"],
  },
  "per-request": {
    sources: ["parts/config/read/request-parameter.ts", "parts/config/declare/value-check.ts"],
    tests: [
      "parts/config/read/request-parameter.test.ts",
      "parts/config/declare/value-check.test.ts",
    ],
  },
  validators: {
    sources: ["parts/config/declare/validators.ts", "parts/config/declare/declaration.ts"],
    tests: ["parts/config/declare/validators.test.ts", "parts/config/declare/declaration.test.ts"],
  },
  rows: {
    sources: [
      "parts/config/read/rows.ts",
      "parts/config/read/row-cipher.ts",
      "parts/config/operate/target.ts",
    ],
    tests: [
      "parts/config/read/rows.test.ts",
      "parts/config/read/row-cipher.test.ts",
      "parts/config/operate/target.test.ts",
    ],
  },
  claim: { sources: ["parts/once/claim.ts"], tests: ["parts/once/claim.test.ts"] },
  step: { sources: ["parts/once/step.ts"], tests: ["parts/once/step.test.ts"] },
  effects: {
    sources: ["app/ctx/effect-ledger.ts"],
    tests: ["app/ctx/effect-ledger.test.ts", "app/ctx/effect-ledger-started.test.ts"],
  },
  settle: { sources: ["parts/once/settlement.ts"], tests: ["parts/once/settlement.test.ts"] },
  lifecycle: {
    sources: ["base/process/lifecycle.ts"],
    tests: ["base/process/lifecycle.test.ts"],
  },
  routes: {
    sources: ["parts/http/route-table.ts", "parts/http/route.ts"],
    tests: ["parts/http/route-table.test.ts"],
  },
  envelope: {
    sources: ["parts/messages/envelope.ts", "parts/messages/proof.ts"],
    tests: [
      "parts/messages/envelope.test.ts",
      "parts/messages/envelope-payload.test.ts",
      "parts/messages/proof.test.ts",
    ],
  },
  sessions: {
    sources: ["parts/wall/session-credentials.ts"],
    tests: ["parts/wall/session-credentials.test.ts"],
  },
  wall: {
    sources: [
      "parts/wall/check-command.ts",
      "parts/wall/expressions.ts",
      "parts/wall/isolation.ts",
      "parts/wall/tenant-keys.ts",
      "parts/wall/wall.ts",
      "parts/wall/walled-stack.ts",
    ],
    tests: [
      "parts/wall/check-command.test.ts",
      "parts/wall/expressions.test.ts",
      "parts/wall/isolation.test.ts",
      "parts/wall/check-command-keys.test.ts",
      "parts/wall/tenant-keys.test.ts",
      "parts/wall/wall.test.ts",
      "parts/wall/walled-stack.test.ts",
    ],
  },
  "schema-comparison": {
    sources: [
      "tools/contract/schema-comparison.ts",
      "tools/contract/shape-differences.ts",
      "tools/contract/schema-shapes.ts",
      "tools/contract/keyword-shapes.ts",
      "tools/contract/shape.ts",
    ],
    tests: ["tools/contract/schema-comparison.test.ts"],
  },
  redaction: { sources: ["base/log/redaction.ts"], tests: ["base/log/redaction.test.ts"] },
};

/**
 * Folders of src/ whose own unit tests have to notice most changes of any of their files. Each takes ten to twenty minutes, so
 * a run without names leaves them out. Their survivors are printed, but do not need a reason.
 */
export const rooms: Readonly<Record<string, string>> = {
  once: "parts/once",
  run: "app/run",
  messages: "parts/messages",
  http: "parts/http",
};
