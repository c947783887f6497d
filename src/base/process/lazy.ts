/** A value that is opened when it is first needed. */
export interface Lazy<Value> {
  /** The value, once it is there: what needs it often looks here first. */
  readonly value: Value | undefined;
  /** What opens it, or has; `undefined` where nothing does. */
  readonly opening: Promise<Value> | undefined;
  /** Opens with the first call; where that fails, the next tries again. */
  open(): Promise<Value>;
}

/** Creates a {@link Lazy}. */
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
