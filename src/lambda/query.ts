type Values = Readonly<Record<string, unknown>> | null | undefined;

/**
 * Puts the query parameters of an event together to the query they came from. An API Gateway has
 * decoded them, so `encode` encodes them again; a load balancer leaves them as they were sent.
 */
export function joinQuery(single: Values, multiple: Values, encode: (text: string) => string): string {
  const pairs: string[] = [];
  for (const [name, values] of Object.entries(multiple ?? single ?? {})) {
    for (const value of [values].flat()) {
      if (typeof value === "string") pairs.push(`${encode(name.toWellFormed())}=${encode(value.toWellFormed())}`);
    }
  }
  return pairs.join("&");
}
