import { AsyncLocalStorage } from "node:async_hooks";
import { type Client, type GatedCall, gateCalls } from "../app/faults.ts";
import type { TestProcess } from "../app/test-process.ts";
import type { RaceMove } from "./search.ts";

/** Move of an order, with its outcome. */
export interface RaceStep extends RaceMove {
  /** `done`, or the name of the error. */
  readonly outcome: string;
}

/** Numbers of moves that disturb each order. */
export interface RaceDisturbances {
  /** Processes that crash after a call. Default 0. */
  readonly crashes?: number;
  /** Calls whose answer is lost. Default 0. */
  readonly lostAnswers?: number;
  /** Calls that the store throttles. Default 0. */
  readonly throttles?: number;
  /** Jumps of the clock past a lease. Default 0. */
  readonly expiries?: number;
}

/** Process that a request runs in, until it crashes. */
export type RaceLife = Pick<TestProcess, "signal" | "crash">;

/** Code that an order runs. Its calls are choices if it has an actor. */
export interface RaceTask {
  readonly order: {
    gate<Output>(task: RaceTask, call: GatedCall, send: () => Promise<Output>): Promise<Output>;
  };
  readonly actor: RaceActor | undefined;
  readonly life: RaceLife | undefined;
}

export interface RaceActor {
  readonly index: number;
  readonly name: string;
  state: "waiting" | "running" | "done";
  readonly started: { readonly promise: Promise<void>; resolve(): void };
}

export const raceTasks = new AsyncLocalStorage<RaceTask>();

/** Passes the client's calls through the gate of the order that makes them. */
export function gateRace(client: Client): void {
  gateCalls(client, (call, send) => {
    const task = raceTasks.getStore();
    return task === undefined ? send() : task.order.gate(task, call, send);
  });
}

/** Returns the operation and the tables of a call. */
export function callText({ operation, input }: GatedCall): string {
  // Safe cast: these members have these types in every call to DynamoDB, and no other call has them.
  const { TableName, RequestItems, TransactItems } = input as {
    readonly TableName?: string;
    readonly RequestItems?: object;
    readonly TransactItems?: readonly Readonly<Record<string, { readonly TableName: string }>>[];
  };
  const names =
    TransactItems?.flatMap((item) => Object.values(item).map((one) => one.TableName)) ??
    (RequestItems === undefined ? [TableName] : Object.keys(RequestItems));
  const tables = names.flatMap((name) => name?.replace(/^keelson-/, "") ?? []);
  return [operation, ...new Set(tables)].join(" ");
}
