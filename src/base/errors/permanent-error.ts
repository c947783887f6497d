/** Present on every permanent error, so that two copies of the package recognise each other's. */
export const permanentBrand: unique symbol = Symbol.for("keelson.permanent-error") as never;

/**
 * Throw it in a consumer, a job or a channel if a retry is pointless: the message goes to the dead-letter queue at once.
 *
 * @example
 * throw new PermanentError("the account is closed");
 */
export class PermanentError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "PermanentError";
  }

  get [permanentBrand](): true {
    return true;
  }
}

/** Whether `error` is a permanent one, of this copy of the package or of another. */
export function isPermanent(error: unknown): error is PermanentError {
  return (
    typeof error === "object" &&
    error !== null &&
    (error as { readonly [permanentBrand]?: unknown })[permanentBrand] === true
  );
}
