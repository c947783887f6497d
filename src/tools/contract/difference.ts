export type DifferenceKind =
  | "type"
  | "changed-type"
  | "value"
  | "values"
  | "least"
  | "most"
  | "multiple-of"
  | "pattern"
  | "format"
  | "unique-items"
  | "required"
  | "named"
  | "unnamed"
  | "only-from"
  | "only-to"
  | "names"
  | "cannot-tell";

export interface Difference {
  /** Path such as `items[].name`. Empty for the whole value. */
  readonly path: string;
  readonly kind: DifferenceKind;
  /** Type of the differing value. For a range, the type that the range limits. */
  readonly type: string;
  readonly from: string;
  readonly to: string;
}

/** Whether a value may be rejected. A property that only one schema mentions is harmless. */
export function isRefusing({ kind }: Difference): boolean {
  return kind !== "only-from" && kind !== "only-to";
}

export function difference(
  path: string,
  kind: DifferenceKind,
  type: string,
  from: string,
  to: string,
): Difference {
  return { path, kind, type, from, to };
}
