/** A value that is opened when it is first needed. */
export interface Lazy<Value> {
  /** The value, once it is there: what needs it often looks here first. */
  readonly value: Value | undefined;
  /** Opens with the first call; where that fails, the next tries again. */
  open(): Promise<Value>;
}

/** Creates a {@link Lazy}. */
export function lazy<Value>(open: () => Promise<Value>): Lazy<Value> {
  let opening: Promise<Value> | undefined;
  const made: { value: Value | undefined } & Lazy<Value> = {
    value: undefined,
    open: () => {
      opening ??= open().then(
        (value) => {
          made.value = value;
          return value;
        },
        (error: unknown) => {
          opening = undefined;
          throw error;
        },
      );
      return opening;
    },
  };
  return made;
}
