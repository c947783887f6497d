/**
 * Names with which CloudWatch takes a line for metrics: that of its Embedded Metric Format, and that of the format's version 0. Data
 * of clients ends up at the top of lines, so that no field of context or data may have them.
 */
export const metricNames: readonly string[] = Object.freeze(["_aws", "CloudWatchMetrics"]);

/**
 * Names fields so that they overwrite nothing in a record, on the server and in the browser alike (specification 2.5): one whose
 * name is taken becomes `data_<name>`, or `context_<name>`, with as many of it as it takes.
 *
 * @param prefix - what the fields are
 * @param names - all of them, which keep those names that are not taken
 */
export function renaming(
  prefix: "data" | "context",
  names: readonly string[],
  isTaken: (name: string) => boolean,
): (name: string) => string {
  let used: Set<string> | undefined;
  return (name) => {
    if (!isTaken(name)) return name;
    used ??= new Set(names);
    let free = `${prefix}_${name}`;
    while (isTaken(free) || used.has(free)) free = `${prefix}_${free}`;
    used.add(free);
    return free;
  };
}
