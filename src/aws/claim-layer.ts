import { AsyncLocalStorage } from "node:async_hooks";
import type { JSONValue } from "@aws-lambda-powertools/commons/types";
import { IdempotencyItemAlreadyExistsError, IdempotencyItemNotFoundError } from "@aws-lambda-powertools/idempotency";
import { BasePersistenceLayer, IdempotencyRecord } from "@aws-lambda-powertools/idempotency/persistence";
import type { DynamoDBClient, DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";
import { systemClock } from "../context/clock.ts";
import type { Database } from "../context/pipeline-context.ts";
import { type ClaimRecord, expiry, leaseMs } from "../once/claim.ts";
import type { ClaimKey, ClaimStore } from "../once/claim-store.ts";
import { type Claim, type Claims, createClaims } from "../once/claims.ts";
import { loadAnswer, storeAnswer } from "../once/stored-answers.ts";
import { dynamoClaimStore } from "./claim-store.ts";

/** What a {@link ClaimLayer} is made of; named as the options of Powertools' `DynamoDBPersistenceLayer`. */
export interface ClaimLayerOptions {
  readonly tableName: string;
  /** The table's partition key. Default `id`. */
  readonly keyAttr?: string;
  /** The table's sort key, where it has one; the partition key is then `staticPkValue`. */
  readonly sortKeyAttr?: string;
  /** Default `idempotency#<name of the Lambda function>`. */
  readonly staticPkValue?: string;
  /** Default: a client of its own, made at first use. */
  readonly awsSdkV3Client?: DynamoDBClient;
  /** What a client of its own is made with. */
  readonly clientConfig?: DynamoDBClientConfig;
  /** How long a duplicate waits for its twin in flight, in milliseconds. Default 10,000; 0 refuses it at once. */
  readonly waitMs?: number;
}

const known = ["tableName", "keyAttr", "sortKeyAttr", "staticPkValue", "awsSdkV3Client", "clientConfig", "waitMs"];

/** One invocation, from its claim to its end. */
interface Invocation {
  readonly data: unknown;
  readonly key: string;
  /** The invocation that it was begun within, or after. */
  readonly outer: Invocation | undefined;
  /** When the function's time is over, in milliseconds since the epoch. */
  readonly deadlineMs: number | undefined;
  claim: Claim | undefined;
  state: "claiming" | "running" | "refused" | "settled";
}

const defaultWaitMs = 10_000;

/**
 * A persistence layer for Powertools' own `makeIdempotent`, `@idempotent` and `makeHandlerIdempotent` (specification
 * 3.2), in the place of `DynamoDBPersistenceLayer` and on its table: claims have an owner and a lease that is renewed,
 * are completed and released by their owner alone, and a duplicate waits for its twin. Results of any size are kept,
 * as JSON. What a layer cannot mend is listed in `docs/once.md`.
 *
 * @throws TypeError for options that it does not have; Error in production where `POWERTOOLS_IDEMPOTENCY_DISABLED` is set.
 * @example
 * const persistenceStore = new ClaimLayer({ tableName: "idempotency" });
 * export const handler = makeIdempotent(charge, { persistenceStore });
 */
export class ClaimLayer extends BasePersistenceLayer {
  readonly #invocations = new AsyncLocalStorage<Invocation | undefined>();
  readonly #options: ClaimLayerOptions;
  #opening: Promise<Opened> | undefined;

  constructor(options: ClaimLayerOptions) {
    super();
    const unknown = Object.keys(options).filter((name) => !known.includes(name));
    if (unknown.length > 0)
      throw new TypeError(`ClaimLayer: there is no option ${unknown.join(", ")}; it has ${known.join(", ")}`);
    const { tableName, keyAttr = "id", sortKeyAttr, waitMs = defaultWaitMs } = options;
    if (typeof tableName !== "string" || tableName === "") throw new TypeError("ClaimLayer: tableName is missing");
    if (keyAttr === sortKeyAttr) throw new TypeError(`ClaimLayer: keyAttr and sortKeyAttr are both ${keyAttr}`);
    if (!(waitMs >= 0)) throw new TypeError("ClaimLayer: waitMs is not a number of milliseconds");
    const isProduction = process.env["NODE_ENV"] !== "development" && process.env["NODE_ENV"] !== "test";
    if (isProduction && process.env["POWERTOOLS_IDEMPOTENCY_DISABLED"]) {
      throw new Error("POWERTOOLS_IDEMPOTENCY_DISABLED is set: calls would be done again; unset it in production");
    }
    this.#options = options;
  }

  /** Runs up to its first `await` at once, so that what follows in Powertools' engine belongs to this invocation. */
  override saveInProgress(data: JSONValue, remainingTimeInMillis?: number): Promise<void> {
    let outer = this.#invocations.getStore();
    while (outer?.state === "refused" || outer?.state === "settled") outer = outer.outer;
    const deadlineMs = remainingTimeInMillis === undefined ? undefined : Date.now() + remainingTimeInMillis;
    const key = super.getHashedIdempotencyKey(data);
    this.#invocations.enterWith({ data, key, outer, deadlineMs, claim: undefined, state: "claiming" });
    return super.saveInProgress(data, remainingTimeInMillis ?? leaseMs);
  }

  /** The key that was claimed, whatever became of the event since. */
  protected override getHashedIdempotencyKey(data: JSONValue): string {
    return this.#current((invocation) => Object.is(invocation.data, data))?.key ?? super.getHashedIdempotencyKey(data);
  }

  protected override async _putRecord(record: IdempotencyRecord): Promise<void> {
    const { claims, store } = await this.#open();
    const invocation = this.#current(({ key }) => key === record.idempotencyKey) as Invocation; // safe: made above
    invocation.state = "refused";
    const taken = await claims.take(this.#claimKey(record.idempotencyKey), {
      fingerprint: record.payloadHash || undefined,
      deadlineMs: invocation.deadlineMs,
      waitMs: this.#options.waitMs ?? defaultWaitMs,
      stop: [],
    });
    if (taken.kind === "taken") {
      invocation.claim = taken.claim;
      invocation.state = "running";
      return;
    }
    // Safe: nothing is compared in taking it, so it is no other's work.
    const { record: found } = taken as Exclude<typeof taken, { kind: "other" }>;
    const known = await this.#recordOf(record.idempotencyKey, found, store);
    throw new IdempotencyItemAlreadyExistsError(`There is a record of ${record.idempotencyKey} already`, known);
  }

  protected override async _updateRecord({ idempotencyKey, responseData }: IdempotencyRecord): Promise<void> {
    const invocation = this.#current(({ key, claim }) => key === idempotencyKey && claim !== undefined);
    if (invocation?.claim === undefined) throw new Error(`${idempotencyKey} is not claimed by this invocation`);
    const { claim } = invocation;
    const { store } = await this.#open();
    try {
      const expiresAt = expiry(Date.now(), this.#keptMs());
      const answer = { status: 200, headers: {}, cookies: [], body: jsonOf(responseData) };
      const result = await storeAnswer(store, { answer, key: claim.key, owner: claim.owner, expiresAt, cipher: undefined });
      if (!(await claim.complete(result))) {
        throw new Error(`the claim of ${idempotencyKey} was taken over: its lease was over before the function came to its end`);
      }
    } finally {
      claim.abandon();
      settle(invocation);
    }
  }

  protected override async _deleteRecord({ idempotencyKey }: IdempotencyRecord): Promise<void> {
    const invocation = this.#current(({ key }) => key === idempotencyKey);
    // Without a claim it was refused: what there is, is its twin's.
    if (invocation?.claim === undefined) return;
    try {
      await invocation.claim.release();
    } catch (error) {
      console.warn(`The claim of ${idempotencyKey} could not be released; it ends by itself within ${leaseMs / 1000} s`, error);
    } finally {
      settle(invocation);
    }
  }

  protected override async _getRecord(idempotencyKey: string): Promise<IdempotencyRecord> {
    const { store } = await this.#open();
    const found = await store.read(this.#claimKey(idempotencyKey));
    if (found === undefined) throw new IdempotencyItemNotFoundError();
    return this.#recordOf(idempotencyKey, found, store);
  }

  /** The innermost invocation under way that fits; one that was settled is none of whoever called it. */
  #current(fits: (invocation: Invocation) => boolean): Invocation | undefined {
    let invocation = this.#invocations.getStore();
    while (invocation !== undefined && (invocation.state === "settled" || !fits(invocation))) invocation = invocation.outer;
    return invocation;
  }

  async #recordOf(idempotencyKey: string, found: ClaimRecord, store: ClaimStore): Promise<IdempotencyRecord> {
    const common = { idempotencyKey, expiryTimestamp: found.expiresAt, payloadHash: found.fingerprint ?? "" };
    if (found.status === "INPROGRESS") {
      return new IdempotencyRecord({ ...common, status: "INPROGRESS", inProgressExpiryTimestamp: found.leaseUntilMs });
    }
    const key = this.#claimKey(idempotencyKey);
    const isOurs = found.owner !== "";
    const { database } = await this.#open();
    const responseData = isOurs ? resultOf(await loadAnswer(store, key, found, undefined)) : await this.#foreign(database, key);
    return new IdempotencyRecord({ ...common, status: "COMPLETED", responseData: responseData as JSONValue });
  }

  /** What `DynamoDBPersistenceLayer` stored, which had no owner. */
  async #foreign(database: Database, key: ClaimKey): Promise<unknown> {
    const { GetCommand } = await import("./dynamodb-sdk.ts");
    const { tableName: TableName } = this.#options;
    const { Item } = await database.send(new GetCommand({ TableName, Key: this.#itemKey(key), ConsistentRead: true }));
    return Item?.["data"];
  }

  #claimKey(idempotencyKey: string): ClaimKey {
    const { sortKeyAttr, staticPkValue = `idempotency#${process.env["AWS_LAMBDA_FUNCTION_NAME"] ?? ""}` } = this.#options;
    return { partition: sortKeyAttr === undefined ? "" : staticPkValue, sort: idempotencyKey };
  }

  #itemKey({ partition, sort }: ClaimKey): Record<string, string> {
    const { keyAttr = "id", sortKeyAttr } = this.#options;
    return sortKeyAttr === undefined ? { [keyAttr]: sort } : { [keyAttr]: partition, [sortKeyAttr]: sort };
  }

  #keptMs(): number {
    return this.getExpiresAfterSeconds() * 1000;
  }

  #open(): Promise<Opened> {
    this.#opening ??= this.#openStore();
    return this.#opening;
  }

  async #openStore(): Promise<Opened> {
    const { DynamoDBClient, DynamoDBDocumentClient } = await import("./dynamodb-sdk.ts");
    const { awsSdkV3Client, clientConfig = {}, tableName } = this.#options;
    const database = DynamoDBDocumentClient.from(awsSdkV3Client ?? new DynamoDBClient(clientConfig));
    const store = dynamoClaimStore(database, tableName, (key) => this.#itemKey(key));
    return { database, store, claims: createClaims({ store, clock: systemClock, keptMs: () => this.#keptMs() }) };
  }
}

interface Opened {
  readonly database: Database;
  readonly store: ClaimStore;
  readonly claims: Claims;
}

function settle(invocation: Invocation): void {
  invocation.claim = undefined;
  invocation.state = "settled";
}

/** @throws TypeError where JSON has no such value. */
function jsonOf(value: unknown): string | undefined {
  try {
    return value === undefined ? undefined : JSON.stringify(value);
  } catch (error) {
    throw new TypeError("the result cannot be kept, since JSON has no such value; return plain data", { cause: error });
  }
}

/** `null` for nothing at all: Middy takes `undefined` for no answer, and runs the function. */
function resultOf({ body }: { readonly body: string | Uint8Array | undefined }): unknown {
  return body === undefined ? null : JSON.parse(String(body));
}
