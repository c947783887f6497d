type Field = readonly [name: string, least: number, most: number, names?: readonly string[]];

const minute: Field = ["minute", 0, 59];
const hour: Field = ["hour", 0, 23];
const day: Field = ["day of the month", 1, 31];
const month: Field = ["month", 1, 12, "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(" ")];
// Sunday is 0, or 7 at the end of a range: FRI-SUN.
const weekday: Field = ["day of the week", 0, 7, "SUN MON TUE WED THU FRI SAT SUN".split(" ")];
const fields = [minute, hour, day, month, weekday];

/** `undefined` if it is valid. Some functions never load croner, which would also report it. */
export function cronProblem(expression: unknown) {
  if (typeof expression !== "string" || expression.length > 200)
    return "it is not a string of at most 200 characters";
  const given = expression.split(" ");
  if (given.length !== fields.length)
    return `it has ${given.length} fields, not minute, hour, day of the month, month and day of the week, one space apart`;
  for (const [index, field] of fields.entries()) {
    const wrong = String(given[index])
      .split(",")
      .find((part) => partValues(part, field).length === 0);
    const [name, least, most] = field;
    if (wrong !== undefined)
      return `${JSON.stringify(wrong)} is not a valid ${name}: use ${least} to ${most}, ranges, * and steps, as in 1-5 or */10`;
  }
  return dateProblem(given);
}

/** croner accepts a date that never comes, such as `0 0 31 4 *`, but does not find a time for it. */
function dateProblem([, , days = "", months = "", weekdays]: readonly string[]) {
  if (weekdays !== "*") return undefined; // it is enough that the day of the week matches
  const first = Math.min(...valuesOf(days, day));
  const longest = Math.max(...valuesOf(months, month).map(daysIn));
  if (first <= longest) return undefined;
  return `no month of ${JSON.stringify(months)} has ${first} days`;
}

/** In a leap year. */
function daysIn(month: number) {
  return new Date(Date.UTC(2024, month, 0)).getUTCDate();
}

export const hoursOf = (field: string) => valuesOf(field, hour);
export const minutesOf = (field: string) => valuesOf(field, minute);

/** In ascending order, each once. */
function valuesOf(text: string, field: Field) {
  const values = new Set(text.split(",").flatMap((part) => partValues(part, field)));
  return [...values].sort((one, other) => one - other);
}

/** Values of `*`, `5`, `MON`, `1-5`, or `*` or `1-5` with a step such as `/2`. Empty if it is invalid. */
function partValues(part: string, field: Field) {
  const match = /^(?:(\w{1,3})|(?:\*|(\w{1,3})-(\w{1,3}))(?:\/(\d{1,2}))?)$/.exec(part);
  const [only, from, to, step = "1"] = match?.slice(1) ?? [""];
  let [, first, last] = field;
  if (only !== undefined) first = last = numberOf(only, field);
  if (from !== undefined && to !== undefined)
    [first, last] = [numberOf(from, field), numberOf(to, field, "lastIndexOf")];
  const by = Number(step);
  if (by < 1 || by > field[2]) return [];
  const values: number[] = [];
  for (let value = first; value <= last; value += by) values.push(value);
  return values;
}

/** `NaN`, which is in no range, if it is not a value of the field. */
function numberOf(
  text: string,
  [, least, most, names = []]: Field,
  position: "indexOf" | "lastIndexOf" = "indexOf",
) {
  const named = names[position](text.toUpperCase());
  if (named >= 0) return least + named;
  const number = /^\d{1,2}$/.test(text) ? Number(text) : NaN;
  return number >= least && number <= most ? number : NaN;
}
