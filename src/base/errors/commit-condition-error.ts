import { ConflictError } from "./errors.ts";

/**
 * Thrown by `ctx.commit` if an item's condition fails (409 `condition_failed`); nothing is written.
 */
export class CommitConditionError extends ConflictError {
  /** Index of the item whose condition failed, from 0. */
  readonly index: number;
  /** DynamoDB's message for the failed condition. */
  readonly reason: string;

  constructor(index: number, reason: string) {
    super("condition_failed");
    this.name = "CommitConditionError";
    this.index = index;
    this.reason = reason;
  }
}
