import { ConflictError } from "./errors.ts";

/** A condition of an item in `ctx.commit` did not hold (409 `condition_failed`); nothing was written. */
export class CommitConditionError extends ConflictError {
  /** Which of the items, counted from 0. */
  readonly index: number;
  /** What DynamoDB says of it. */
  readonly reason: string;

  constructor(index: number, reason: string) {
    super("condition_failed");
    this.name = "CommitConditionError";
    this.index = index;
    this.reason = reason;
  }
}
