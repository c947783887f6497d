import type { ConfigScope } from "../config/declare/key.ts";

/** What becomes of a stored row: its number is clamped; it does not fit, and the next level decides; or nobody reads it. */
export type Verdict = "clamped" | "fallback" | "ignored";

/** A stored row that is not read as it is stored. */
export interface StoredVerdict {
  /** As it is stored: of a key that was renamed the former identifier. */
  readonly key: string;
  readonly scope: ConfigScope;
  /** `null` of a row that holds for all tenants. */
  readonly tenantId: string | null;
  readonly verdict: Verdict;
  /**
   * The value that is read there instead; `null` where there is none. Of a secret `"(secret)"`, where a computed function decides
   * `"(computed)"`.
   */
  readonly reads: unknown;
}

/** What stored rows come to. */
export interface StoredReport {
  /** At most `limit` of them. */
  readonly stored: readonly StoredVerdict[];
  /** All of them, listed or not. */
  readonly counts: Readonly<Record<Verdict, number>>;
  /** How many stored values were looked at. */
  readonly rows: number;
  /** How many are counted, but not listed. */
  readonly unlisted: number;
  /** How many secrets nobody could look at, since the key ring is not there or does not open them. */
  readonly unopened: number;
}
