interface Field {
  readonly name: string;
  readonly least: number;
  readonly most: number;
  readonly names?: readonly string[];
}

const fields: readonly Field[] = [
  { name: "minute", least: 0, most: 59 },
  { name: "hour", least: 0, most: 23 },
  { name: "day of the month", least: 1, most: 31 },
  {
    name: "month",
    least: 1,
    most: 12,
    names: ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
  },
  // Sunday is 0, or 7 at the end of a range: FRI-SUN.
  {
    name: "day of the week",
    least: 0,
    most: 7,
    names: ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"],
  },
];

/**
 * Returns the problem of a cron expression, or `undefined` if it is valid. croner accepts every
 * valid expression, but functions that only answer requests do not load croner.
 */
export function cronProblem(expression: unknown): string | undefined {
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
    if (wrong !== undefined) {
      return `${JSON.stringify(wrong)} is no ${field.name}: use ${field.least} to ${field.most}, ranges, * and steps, as in 1-5 or */10`;
    }
  }
  return undefined;
}

/** Whether a part is `*`, `5`, `MON`, `1-5`, or `*` or `1-5` with a step such as `/2`. */
function isPart(part: string, field: Field): boolean {
  const [, from = "", to, step] = /^(\*|\w{1,3})(?:-(\w{1,3}))?(?:\/(\d{1,2}))?$/.exec(part) ?? [];
  if (step !== undefined && (Number(step) < 1 || Number(step) > field.most)) return false;
  if (from === "*") return to === undefined;
  const first = numberOf(from, field);
  if (to === undefined) return step === undefined && first !== undefined;
  const last = numberOf(to, field, "lastIndexOf");
  return first !== undefined && last !== undefined && first <= last;
}

function numberOf(
  text: string,
  { least, most, names = [] }: Field,
  position: "indexOf" | "lastIndexOf" = "indexOf",
): number | undefined {
  const named = names[position](text.toUpperCase());
  if (named >= 0) return least + named;
  const number = /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN;
  return number >= least && number <= most ? number : undefined;
}
