/** A pure core: what is mutated, and the tests that have to notice. Paths below src; what moves takes its line here along. */
export interface Core {
  readonly sources: readonly string[];
  readonly tests: readonly string[];
}

export const cores: Readonly<Record<string, Core>> = {
  cascade: { sources: ["config/read/cascade.ts"], tests: ["config/read/cascade.test.ts"] },
  "per-request": {
    sources: ["config/read/request-parameter.ts", "config/declare/value-check.ts"],
    tests: ["config/read/request-parameter.test.ts", "config/declare/value-check.test.ts"],
  },
  validators: {
    sources: [
      "config/declare/validators.ts",
      "config/declare/key-rules.ts",
      "config/declare/definition.ts",
    ],
    tests: ["config/declare/validators.test.ts", "config/declare/declaration.test.ts"],
  },
  rows: {
    sources: ["config/read/rows.ts", "config/read/row-cipher.ts", "config/operate/target.ts"],
    tests: [
      "config/read/rows.test.ts",
      "config/read/row-cipher.test.ts",
      "config/operate/target.test.ts",
    ],
  },
  claim: { sources: ["once/claim.ts"], tests: ["once/claim.test.ts"] },
  step: { sources: ["once/step.ts"], tests: ["once/step.test.ts"] },
  effects: { sources: ["run/effect-ledger.ts"], tests: ["run/effect-ledger.test.ts"] },
  settle: { sources: ["once/settlement.ts"], tests: ["once/settlement.test.ts"] },
  lifecycle: {
    sources: ["process/lifecycle.ts", "process/times.ts"],
    tests: ["process/lifecycle.test.ts"],
  },
  routes: {
    sources: ["http/route-table.ts", "http/route-conflicts.ts", "http/route.ts"],
    tests: ["http/route-table.test.ts"],
  },
  envelope: {
    sources: ["events/envelope.ts", "events/proof.ts", "events/cause.ts"],
    tests: ["events/envelope.test.ts", "events/proof.test.ts", "events/cause.test.ts"],
  },
  sessions: {
    sources: ["wall/session-credentials.ts"],
    tests: ["wall/session-credentials.test.ts"],
  },
  "schema-comparison": {
    sources: [
      "contract/schema-comparison.ts",
      "contract/schema-shapes.ts",
      "contract/keyword-shapes.ts",
      "contract/shape-value.ts",
      "contract/shape.ts",
    ],
    tests: ["contract/schema-comparison.test.ts"],
  },
  redaction: { sources: ["log/redaction.ts"], tests: ["log/redaction.test.ts"] },
};
