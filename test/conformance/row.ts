import { afterAll, beforeAll, test } from "vitest";
import { type Fixture, startFixture } from "./fixture.ts";

/** One sentence of the specification, and what proves it. */
export interface Row {
  /** Section and rule: `2.1`, `4.1.2`. */
  readonly section: string;
  /** As the specification has it; what another row proves is left out as `…`. */
  readonly sentence: string;
  /** Rejects where the behaviour is not what the sentence promises. */
  readonly prove: (fixture: Fixture) => Promise<void>;
}

/** Turns rows into tests on one fixture, each named after its sentence. */
export function prove(rows: readonly Row[]): void {
  let fixture: Fixture | undefined;
  beforeAll(async () => {
    fixture = await startFixture();
  });
  afterAll(() => fixture?.close());

  for (const { section, sentence, prove: proof } of rows) {
    test(`${section}: ${sentence}`, async () => {
      if (fixture === undefined) throw new Error("the fixture did not start");
      await proof(fixture);
    });
  }
}
