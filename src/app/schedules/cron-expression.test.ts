import { Cron } from "croner";
import fc from "fast-check";
import { expect, test } from "vitest";
import { cronProblem } from "./cron-expression.ts";

/** Whether croner, which decides when a schedule runs, takes an expression. */
function isCronersToo(expression: string): boolean {
  try {
    new Cron(expression, { paused: true, mode: "5-part" });
    return true;
  } catch {
    return false;
  }
}

test.each([
  "* * * * *",
  "0 3 * * MON-FRI",
  "*/10 0-6,22-23 1,15 jan-mar,12 sun",
  "1-59/2 23 31 12 7",
  "0 0 * * 0-7",
  "0 0 * * fri-sun",
  "05 03 01 01 *",
  "0 0 29 2 *",
  "0 0 */31 2 *",
  "0 0 31 2-4 *",
  "0 0 30,31 APR *",
  "0 0 31 4 MON",
])("accepts %j, as croner does", (expression) => {
  expect(cronProblem(expression)).toBeUndefined();
  expect(isCronersToo(expression)).toBe(true);
});

test.each<[unknown, string]>([
  [undefined, "it is not a string of at most 200 characters"],
  [5, "it is not a string"],
  [`${"1,".repeat(99)}1 * * * *`, "it is not a string of at most 200 characters"],
  ["", "it has 1 fields"],
  ["@daily", "it has 1 fields"],
  [
    "0 3 * *",
    "it has 4 fields, not minute, hour, day of the month, month and day of the week, one space apart",
  ],
  ["0 0 3 * * *", "it has 6 fields"],
  [" 0 3 * * *", "it has 6 fields"],
  ["60 3 * * *", '"60" is not a valid minute: use 0 to 59, ranges, * and steps, as in 1-5 or */10'],
  ["0 24 * * *", '"24" is not a valid hour'],
  ["0 3 0 * *", '"0" is not a valid day of the month'],
  ["0 3 L * *", '"L" is not a valid day of the month'],
  ["0 3 * 13 *", '"13" is not a valid month'],
  ["0 3 * MON *", '"MON" is not a valid month'],
  ["0 3 * * 8", '"8" is not a valid day of the week'],
  ["0 3 * * FRI-MON", '"FRI-MON" is not a valid day of the week'],
  ["0 3 * * FRI-XYZ", '"FRI-XYZ" is not a valid day of the week'],
  ["0 3 * * XYZ-FRI", '"XYZ-FRI" is not a valid day of the week'],
  ["0 3 * * FRI#2", '"FRI#2" is not a valid day of the week'],
  ["0/5 3 * * *", '"0/5" is not a valid minute'],
  ["*/0 3 * * *", '"*/0" is not a valid minute'],
  ["*/60 3 * * *", '"*/60" is not a valid minute'],
  ["*-5 3 * * *", '"*-5" is not a valid minute'],
  ["5-1 3 * * *", '"5-1" is not a valid minute'],
  ["1,,2 3 * * *", '"" is not a valid minute'],
  ["-1 3 * * *", '"-1" is not a valid minute'],
  ["0 0 31 4,JUN-JUN *", 'no month of "4,JUN-JUN" has 31 days'],
  ["0 0 30-31 2 *", 'no month of "2" has 30 days'],
])("refuses %j: %s", (expression, problem) => {
  expect(cronProblem(expression)).toContain(problem);
});

test("refuses the dates for which croner finds no time, and no others", () => {
  const list = (...values: readonly number[]) =>
    fc.array(fc.constantFrom(...values), { minLength: 1, maxLength: 2 }).map(String);
  const weekday = fc.constantFrom("*", "*", "*", "1", "0-7");
  let refused = 0;
  fc.assert(
    fc.property(list(29, 30, 31), list(2, 4, 6, 9, 12), weekday, (days, months, weekday) => {
      const expression = `0 0 ${days} ${months} ${weekday}`;
      const never = new Cron(expression, { paused: true, mode: "5-part" }).nextRun() === null;
      if (never) refused += 1;
      expect(cronProblem(expression) !== undefined, expression).toBe(never);
    }),
    { numRuns: 500 },
  );
  expect(refused).toBeGreaterThan(10);
});

test("accepts only expressions that croner accepts", () => {
  const atom = fc.constantFrom(
    "*",
    "0",
    "1",
    "7",
    "12",
    "31",
    "59",
    "60",
    "MON",
    "sun",
    "JAN",
    "L",
    "-",
    "/",
    "?",
    "",
    "#",
  );
  const part = fc.array(atom, { minLength: 1, maxLength: 2 }).map((atoms) => atoms.join("-"));
  const stepped = fc
    .tuple(part, fc.constantFrom("", "/0", "/2", "/7", "/31"))
    .map((both) => both.join(""));
  const field = fc.oneof(
    { weight: 3, arbitrary: fc.constant("*") },
    fc.array(stepped, { minLength: 1, maxLength: 3 }).map(String),
  );
  const expressions = fc
    .array(field, { minLength: 5, maxLength: 5 })
    .map((fields) => fields.join(" "));
  let taken = 0;
  fc.assert(
    fc.property(expressions, (expression) => {
      if (cronProblem(expression) !== undefined) return;
      taken += 1;
      expect(isCronersToo(expression), expression).toBe(true);
    }),
    { numRuns: 2_000 },
  );
  expect(taken).toBeGreaterThan(50);
});
