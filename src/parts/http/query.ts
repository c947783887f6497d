import { FrameworkError } from "../../base/errors/errors.ts";

const maxNames = 1_000;

/**
 * Parses `application/x-www-form-urlencoded` text of a query or a form into a prototype-free
 * object. A repeated name gets an array of its values.
 *
 * @throws FrameworkError `malformed_request` for malformed percent-encoding, or more than 1,000
 * pairs.
 */
export function parseForm(
  text: string,
  where: "query" | "body",
): Record<string, string | string[]> {
  const values: Record<string, string | string[]> = Object.create(null);
  const pairs = text.split("&", maxNames + 1);
  if (pairs.length > maxNames)
    throw new FrameworkError(
      "malformed_request",
      `The ${where} has more than ${maxNames} parameters`,
    );
  for (const pair of pairs) {
    if (pair === "") continue;
    const mark = pair.indexOf("=");
    const name = decoded(mark === -1 ? pair : pair.slice(0, mark), where);
    const value = mark === -1 ? "" : decoded(pair.slice(mark + 1), where);
    const present = values[name];
    if (present === undefined) values[name] = value;
    else if (typeof present === "string") values[name] = [present, value];
    else present.push(value);
  }
  return values;
}

function decoded(text: string, where: "query" | "body"): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw new FrameworkError("malformed_request", `The ${where} has malformed percent-encoding`);
  }
}
