import { expect, test, vi } from "vitest";
import type { SignAsSession } from "./isolation.ts";
import { type Stack, walledStack } from "./walled-stack.ts";

interface Added {
  readonly middleware: (next: (given: unknown) => unknown, context: unknown) => Handler;
  readonly place: { readonly relation: string; readonly toMiddleware: string };
}
type Handler = (given: unknown) => unknown;

/** A stack of the SDK, as far as a walled one uses it; `events` are the calls of its copies, too. */
function fakeStack(events: string[], name = "own", inherited: readonly Added[] = []) {
  const added: Added[] = [...inherited];
  const called =
    (call: string, result?: unknown) =>
    (...given: unknown[]) => {
      events.push(`${name}.${call}(${given.map(String).join()})`);
      return result;
    };
  const stack = {
    added,
    resolve: (last: Handler, context: unknown): Handler => {
      events.push(`${name}.resolve`);
      return added.reduceRight((next, { middleware }) => middleware(next, context), last);
    },
    concat: (from: unknown) => {
      events.push(`${name}.concat(${String(from)})`);
      return fakeStack(events, "joined", added);
    },
    clone: () => {
      events.push(`${name}.clone`);
      return fakeStack(events, "copy", added);
    },
    addRelativeTo: (middleware: Added["middleware"], place: Added["place"]) => {
      events.push(`${name}.add ${place.relation} ${place.toMiddleware}`);
      added.push({ middleware, place });
    },
    applyToStack: called("applyToStack"),
    add: called("add"),
    use: called("use"),
    remove: called("remove", true),
    removeByTag: called("removeByTag", true),
    identify: called("identify", ["a"]),
    identifyOnResolve: called("identifyOnResolve", true),
  };
  return stack;
}

const asStack = (stack: object) => stack as unknown as Stack; // as far as a walled stack uses it

function setup(refused?: Error, sign?: SignAsSession) {
  const events: string[] = [];
  const own = fakeStack(events);
  const check = vi.fn(() => refused);
  const open =
    sign === undefined ? undefined : vi.fn((operation: string) => opening(operation, sign));
  const stack = walledStack(asStack(own), { check, open });
  return { events, own, check, open, stack };
}

/** The session of a `Get`; any other operation needs none. */
function opening(operation: string, sign: SignAsSession): Promise<SignAsSession> | undefined {
  return operation === "Get" ? Promise.resolve(sign) : undefined;
}

const sent: Handler = (given) => ({ sent: given });
const run = (stack: Stack, commandName = "GetCommand", given: object = { input: 1 }) =>
  (stack.resolve(sent as never, { commandName } as never) as unknown as Handler)(given);

test("checks the input last before it is serialized, on a copy of the client's stack", () => {
  const { stack, own, check, events } = setup();
  expect(run(stack, "GetItemCommand", { input: { TableName: "files" } })).toEqual({
    sent: { input: { TableName: "files" } },
  });
  expect(check).toHaveBeenCalledWith("GetItem", { TableName: "files" });
  expect(events).toEqual(["own.clone", "copy.add before serializerMiddleware", "copy.resolve"]);
  expect(own.added).toEqual([]);
});

test("names a command without a name, and one whose name contains Command", () => {
  const { stack, check } = setup();
  run(stack, "CommandItemCommand");
  (stack.resolve(sent as never, {} as never) as unknown as Handler)({ input: 2 });
  expect(check.mock.calls).toEqual([
    ["CommandItem", 1],
    ["undefined", 2],
  ]);
});

test("rejects a refused command, which is neither sent nor opens a session", async () => {
  const refused = new Error("refused");
  const { stack, open } = setup(refused, vi.fn());
  await expect(run(stack)).rejects.toBe(refused);
  expect(open).not.toHaveBeenCalled();
});

test("signs a command again that needs a session, after the SDK's own signature", async () => {
  const sign = vi.fn();
  const { stack, open, events } = setup(undefined, sign);
  await expect(run(stack, "GetCommand", { input: 1, request: "r" })).resolves.toEqual({
    sent: { input: 1, request: "r" },
  });
  expect(open).toHaveBeenCalledWith("Get", 1);
  expect(sign.mock.calls).toEqual([["r"]]);
  expect(events.slice(1, 3)).toEqual([
    "copy.add before serializerMiddleware",
    "copy.add after httpSigningMiddleware",
  ]);
});

test("leaves the signature of a command alone that needs no session", () => {
  const sign = vi.fn();
  const { stack } = setup(undefined, sign);
  expect(run(stack, "ListCommand", { input: 1, request: "r" })).toEqual({
    sent: { input: 1, request: "r" },
  });
  expect(sign).not.toHaveBeenCalled();
});

test("fails if the session cannot be opened", async () => {
  const failure = new Error("no credentials");
  const open = () => Promise.reject(failure);
  const stack = walledStack(asStack(fakeStack([])), { check: () => undefined, open });
  await expect(run(stack)).rejects.toBe(failure);
});

test("a stack joined with another, and a copy, check once and need no second copy", () => {
  const { stack, check, events } = setup();
  run(stack.concat("command" as never) as unknown as Stack);
  expect(events).toEqual([
    "own.concat(command)",
    "joined.add before serializerMiddleware",
    "joined.resolve",
  ]);
  run(stack.clone());
  expect(events.slice(3)).toEqual([
    "own.clone",
    "copy.add before serializerMiddleware",
    "copy.resolve",
  ]);
  expect(check).toHaveBeenCalledTimes(2);
});

test("takes the check along to a stack that it is applied to", async () => {
  const refused = new Error("refused");
  const { stack, events } = setup(refused);
  const other = fakeStack([], "other");
  stack.applyToStack(asStack(other));
  expect(events).toEqual(["own.applyToStack([object Object])"]);
  await expect(run(asStack(other))).rejects.toBe(refused);
});

test("hands every other call on to the client's stack", () => {
  const { stack, events } = setup();
  const any = "m" as never;
  stack.add(any, any);
  stack.addRelativeTo("m" as never, { relation: "after", toMiddleware: "x" });
  stack.use("plugin" as never);
  expect(stack.remove("m")).toBe(true);
  expect(stack.removeByTag("tag")).toBe(true);
  expect(stack.identify()).toEqual(["a"]);
  expect(stack.identifyOnResolve(true)).toBe(true);
  expect(events).toEqual([
    "own.add(m,m)",
    "own.add after x",
    "own.use(plugin)",
    "own.remove(m)",
    "own.removeByTag(tag)",
    "own.identify()",
    "own.identifyOnResolve(true)",
  ]);
});
