/** Description of a keelson function for packaging tools. */
export interface FunctionMark {
  /** Kind of the function, such as `http` for `lambdaHttp`. */
  readonly kind: string;
  /** For `lambdaHandler`, the only handler that is called. */
  readonly handler?: string;
}

/** Shared by all copies of keelson: a bundle contains a separate one. */
const mark = Symbol.for("keelson.function");

export function marked<Made extends object>(made: Made, saying: FunctionMark): Made {
  return Object.assign(made, { [mark]: saying });
}

/**
 * Returns the description of a function, or `undefined` without one, such as for a function that
 * wraps another.
 */
export function markOf(made: object): FunctionMark | undefined {
  return (made as { readonly [mark]?: FunctionMark })[mark]; // safe: only `marked` sets it
}
