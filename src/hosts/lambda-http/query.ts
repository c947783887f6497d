type Values = Readonly<Record<string, unknown>> | null | undefined;

/**
 * Rebuilds the query string from an event's parameters. A name's list wins over its single value,
 * which is the last of the list; the list may be empty or missing. API Gateway decodes parameters,
 * so `encode` encodes them again. A load balancer passes them on as sent.
 */
export function joinQuery(
  single: Values,
  multiple: Values,
  encode: (text: string) => string,
): string {
  const pairs: string[] = [];
  const listed = new Set<string>();
  for (const [name, values] of entriesOf(multiple)) {
    for (const value of [values].flat()) {
      if (typeof value !== "string") continue;
      listed.add(name);
      pairs.push(pair(name, value, encode));
    }
  }
  for (const [name, values] of entriesOf(single)) {
    if (listed.has(name)) continue;
    for (const value of [values].flat())
      if (typeof value === "string") pairs.push(pair(name, value, encode));
  }
  return pairs.join("&");
}

function entriesOf(values: Values): [string, unknown][] {
  return typeof values === "object" && values !== null ? Object.entries(values) : [];
}

function pair(name: string, value: string, encode: (text: string) => string): string {
  return `${encode(name.toWellFormed())}=${encode(value.toWellFormed())}`;
}
