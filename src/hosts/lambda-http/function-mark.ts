/** Description of a keelson function, for tools that check how it is deployed. */
export interface FunctionMark {
  /** Kind of the function, such as `http` for `lambdaHttp`. */
  readonly kind: string;
  /** Name of the only handler that the function calls, for `lambdaHandler`. */
  readonly handler?: string;
}

/** Global symbol, because a bundle contains its own copy of keelson. */
const mark = Symbol.for("keelson.function");

export function marked<Made extends object>(made: Made, saying: FunctionMark): Made {
  return Object.assign(made, { [mark]: saying });
}

/**
 * Returns the description of a function. `undefined` if it has none, such as a function that wraps
 * another.
 */
export function markOf(made: object): FunctionMark | undefined {
  return (made as { readonly [mark]?: FunctionMark })[mark]; // safe: only `marked` sets this
}
