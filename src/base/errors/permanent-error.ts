/** Symbol by which two copies of the package recognize each other's errors. */
export const permanentBrand: unique symbol = Symbol.for("keelson.permanent-error") as never;

/**
 * Thrown by a consumer, a job or a channel if a retry is pointless: the message goes to the
 * dead-letter queue immediately.
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

export function isPermanent(error: unknown): error is PermanentError {
  return (
    typeof error === "object" &&
    error !== null &&
    (error as { readonly [permanentBrand]?: unknown })[permanentBrand] === true
  );
}
