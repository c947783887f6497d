type Field = readonly [name: string, least: number, most: number, names?: readonly string[]];

const fields: readonly Field[] = [
  ["minute", 0, 59],
  ["hour", 0, 23],
  ["day of the month", 1, 31],
  ["month", 1, 12, "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(" ")],
  // Sunday is 0, or 7 at the end of a range: FRI-SUN.
  ["day of the week", 0, 7, "SUN MON TUE WED THU FRI SAT SUN".split(" ")],
];

/** `undefined` if it is valid. Some functions never load croner, which would say so, too. */
export function cronProblem(expression: unknown) {
  if (typeof expression !== "string" || expression.length > 200)
    return "it is not a text of at most 200 characters";
  const given = expression.split(" ");
  if (given.length !== fields.length) {
    return `it has ${given.length} fields, not minute, hour, day of the month, month and day of the week, one space apart`;
  }
  for (const [index, field] of fields.entries()) {
    const wrong = String(given[index])
      .split(",")
      .find((part) => !isPart(part, field));
    const [name, least, most] = field;
    if (wrong !== undefined)
      return `${JSON.stringify(wrong)} is no ${name}: use ${least} to ${most}, ranges, * and steps, as in 1-5 or */10`;
  }
  return undefined;
}

/** `*`, `5`, `MON`, `1-5`, or `*` or `1-5` with a step such as `/2`. */
function isPart(part: string, field: Field) {
  const [, from = "", to, step] = /^(\*|\w{1,3})(?:-(\w{1,3}))?(?:\/(\d{1,2}))?$/.exec(part) ?? [];
  if (step !== undefined && (Number(step) < 1 || Number(step) > field[2])) return false;
  if (from === "*") return to === undefined;
  const first = numberOf(from, field);
  if (to === undefined) return step === undefined && first !== undefined;
  const last = numberOf(to, field, "lastIndexOf");
  return first !== undefined && last !== undefined && first <= last;
}

function numberOf(
  text: string,
  [, least, most, names = []]: Field,
  position: "indexOf" | "lastIndexOf" = "indexOf",
) {
  const named = names[position](text.toUpperCase());
  if (named >= 0) return least + named;
  const number = /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN;
  return number >= least && number <= most ? number : undefined;
}
