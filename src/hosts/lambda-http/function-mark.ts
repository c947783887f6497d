/** What a function of keelson says it is, to whoever packages it. */
export interface FunctionMark {
  /** `http` for `lambdaHttp`, and so on. */
  readonly kind: string;
  /** Of `lambdaHandler`: the handler that alone is called. */
  readonly handler?: string;
}

/** One for all copies of keelson: a bundle has its own. */
const mark = Symbol.for("keelson.function");

/** Makes a function say what it is. */
export function marked<Made extends object>(made: Made, saying: FunctionMark): Made {
  return Object.assign(made, { [mark]: saying });
}

/** What a function says it is; `undefined` where it says nothing, such as one that wraps it. */
export function markOf(made: object): FunctionMark | undefined {
  return (made as { readonly [mark]?: FunctionMark })[mark]; // safe: only `marked` sets it
}
