import { Duplex } from "node:stream";
import { expect, test } from "vitest";
import {
  createUnreadBudget,
  defaultUnreadBytes,
  type Holder,
  type UnreadBudget,
} from "./unread-bytes.ts";

const mebibyte = 1_048_576;

interface Held extends Holder {
  readonly socket: Duplex;
  readonly handle: { bytesWritten: number; writeQueueSize: number };
}

function budgetOf(limitBytes: number) {
  const known = new Map<Duplex, Holder>();
  const cuts: number[] = [];
  const strains: number[] = [];
  const budget: UnreadBudget = createUnreadBudget(
    limitBytes,
    known,
    () => void strains.push(budget.heldBytes),
    (count) => void cuts.push(count),
  );
  const connect = (requests: Held["requests"] = twoRequests, session?: Held["session"]): Held => {
    const handle = { bytesWritten: 0, writeQueueSize: 0 };
    const socket = Object.assign(new Duplex({ read() {} }), { _handle: handle });
    const unread = { bytes: 0, movedMs: 0, taken: 0, isCut: false };
    const holder = { unread, requests, session, transport: socket, socket, handle };
    known.set(socket, holder);
    return holder;
  };
  return { budget, connect, cuts, strains };
}

const requestsOf = (...requests: object[]) => Object.assign(requests, { size: requests.length });
const twoRequests = requestsOf({}, {});

test("over the limit, cuts the connections that hold most until at most three quarters of it are held", () => {
  const { budget, connect, cuts } = budgetOf(100);
  const [large, small, latest] = [connect(), connect(), connect()];
  budget.hold(large, 60);
  budget.hold(small, 30);
  budget.hold(latest, 20);

  expect(
    [large, small, latest].map(({ unread, socket }) => [unread.isCut, socket.destroyed]),
  ).toEqual([
    [true, true],
    [false, false],
    [false, false],
  ]);
  expect([budget.heldBytes, cuts]).toEqual([50, [1]]);
});

test("the bytes of a cut connection no longer count, and releasing them changes nothing", () => {
  const { budget, connect } = budgetOf(100);
  const [cut, other] = [connect(), connect(requestsOf({}))];
  budget.hold(cut, 90);
  budget.hold(other, 20);
  budget.hold(cut, 1_000);
  budget.release(cut, 90);
  expect(budget.heldBytes).toBe(20);
  budget.release(other, 20);

  expect(budget.heldBytes).toBe(0);
});

test("spares a client that reads before one that does not, even if it holds more", async () => {
  const { budget, connect } = budgetOf(1_000);
  const [reading, stuck, latest] = [connect(), connect(), connect()];
  for (const { handle } of [reading, stuck])
    Object.assign(handle, { bytesWritten: 1_000, writeQueueSize: 500 });
  budget.hold(reading, 600);
  budget.hold(stuck, 350);
  const sinceMs = performance.now();
  await expect.poll(() => performance.now() - sinceMs).toBeGreaterThan(50);
  reading.handle.writeQueueSize = 400;
  budget.hold(latest, 100);

  expect([reading, stuck].map(({ unread }) => unread.isCut)).toEqual([false, true]);
});

test("counts an HTTP/2 stream that is taken as read, and ends the session of a cut connection", async () => {
  const { budget, connect } = budgetOf(1_000);
  let taken = 0;
  const ended: string[] = [];
  const session = (name: string) => ({ destroy: () => void ended.push(name) });
  const reading = connect(
    requestsOf({ outflow: { taken: () => taken } }, { outflow: { taken: () => undefined } }),
    session("reading"),
  );
  const stuck = connect(
    requestsOf({ drop: () => void ended.push("answer") }, {}),
    session("stuck"),
  );
  budget.hold(reading, 600);
  budget.hold(stuck, 350);
  const sinceMs = performance.now();
  await expect.poll(() => performance.now() - sinceMs).toBeGreaterThan(50);
  taken = 10;
  budget.hold(connect(), 100);

  expect(ended).toEqual(["stuck", "answer"]);
});

test("one response alone may be larger than the limit, but several of one connection may not", () => {
  const { budget, connect } = budgetOf(100);
  const [alone, several] = [connect(requestsOf({})), connect()];
  budget.hold(alone, 500);
  expect([alone.unread.isCut, budget.heldBytes]).toEqual([false, 500]);
  budget.release(alone, 500);
  budget.hold(several, 500);

  expect([several.unread.isCut, budget.heldBytes]).toEqual([true, 0]);
});

test("reports a strain at an eighth of the limit, and at each further eighth", () => {
  const { budget, connect, strains } = budgetOf(800);
  const one = connect();
  for (let times = 0; times < 5; times += 1) budget.hold(one, 50);
  expect([strains, budget.isStrained]).toEqual([[150], true]);
  budget.hold(one, 50);
  budget.release(one, 250);
  expect([strains, budget.isStrained]).toEqual([[150, 300], false]);
  budget.hold(one, 60);

  expect(strains).toEqual([150, 300, 110]);
});

test("has room for a request while its connection and all connections together hold little", () => {
  const { budget, connect } = budgetOf(800);
  const [one, other] = [connect(), connect()];
  expect(budget.hasRoom(one)).toBe(true);
  budget.hold(one, 100);
  expect([budget.hasRoom(one), budget.hasRoom(other)]).toEqual([false, true]);
  budget.hold(one, 500);

  expect(budget.hasRoom(other)).toBe(false);
});

test.each([
  [128 * mebibyte, 100],
  [24 * mebibyte, 24],
  [100, 1],
])(
  "with a limit of %d bytes, lets this many requests run ahead of earlier ones: %d",
  (limitBytes, count) => {
    const { budget } = budgetOf(limitBytes);
    const taken = Array.from({ length: 101 }, () => budget.takeAhead());
    expect(taken.filter(Boolean)).toHaveLength(count);
    budget.giveAhead();

    expect([budget.takeAhead(), budget.takeAhead()]).toEqual([true, false]);
  },
);

test("the default limit is 128 MiB, a quarter of a small heap, and at least 8 MiB", () => {
  const withHeap = (megabytes: number) =>
    defaultUnreadBytes((megabytes + 192) * mebibyte) / mebibyte; // with its young objects
  expect([4_096, 512, 96, 10].map(withHeap)).toEqual([128, 128, 24, 8]);
  expect(defaultUnreadBytes()).toBeGreaterThanOrEqual(8 * mebibyte);
});
