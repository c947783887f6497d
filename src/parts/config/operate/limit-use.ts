/** Limit that reads a key, in an explanation of the key. */
export interface LimitUse {
  /** Place and name: `files.file.create requests-per-minute`, or the full name of a quota. */
  readonly limit: string;
  readonly kind: "rate" | "quota" | "concurrency" | "in-flight";
  /** Of a rate limit or a quota. */
  readonly window?: string;
  /**
   * Tokens or usage that the explained tenant or user has taken in the current window; processes may
   * still hold some tokens. Only of a quota, and of a rate limit per tenant or user; absent if the
   * store fails.
   */
  readonly taken?: number;
  /** Whether nothing is left of the key's value. Absent without `taken`. */
  readonly limited?: boolean;
  /** End of the window, in ISO 8601. Absent without `taken`, and for a quota without periods. */
  readonly until?: string;
}
