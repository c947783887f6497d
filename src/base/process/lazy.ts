export interface Lazy<Value> {
  /** The value, `undefined` before it is open. Frequent callers use it instead of the promise. */
  readonly value: Value | undefined;
  /** Promise of the value; `undefined` before the first call and after a failure. */
  readonly opening: Promise<Value> | undefined;
  /** Opens the value on the first call. After a failure, the next call tries again. */
  open(): Promise<Value>;
}

export function lazy<Value>(open: () => Promise<Value>): Lazy<Value> {
  const made: { -readonly [Name in keyof Lazy<Value>]: Lazy<Value>[Name] } = {
    value: undefined,
    opening: undefined,
    open: () => {
      made.opening ??= open().then(
        (value) => {
          made.value = value;
          return value;
        },
        (error: unknown) => {
          made.opening = undefined;
          throw error;
        },
      );
      return made.opening;
    },
  };
  return made;
}
