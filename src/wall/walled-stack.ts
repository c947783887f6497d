import type { Database } from "../context/database.ts";

/** The middlewares of a client. */
export type Stack = Database["middlewareStack"];

/**
 * Says why a command is not sent; `undefined` for one that is. `operation` is the command's name, such as `GetItemCommand`, and
 * `input` as it is about to be written out.
 */
export type InputCheck = (operation: unknown, input: unknown) => Error | undefined;

/**
 * Puts a check around the middlewares of a client. Every command asks its client's middlewares to resolve it, whoever's `send` it
 * goes through, and here they add the check as the last before it is written out: it sees what is sent, whatever other middlewares
 * have made of it and whatever becomes of the caller's objects meanwhile.
 */
export function walledStack(stack: Stack, check: InputCheck): Stack {
  return new WalledStack(stack, check, false) as unknown as Stack; // safe: it has each member; what a clone's type adds, none has
}

interface Given {
  readonly input: unknown;
}

class WalledStack {
  readonly #stack: Stack;
  readonly #check: InputCheck;
  /** Whether the stack is nobody else's, so that it may take the check itself. */
  readonly #isOwn: boolean;

  constructor(stack: Stack, check: InputCheck, isOwn: boolean) {
    this.#stack = stack;
    this.#check = check;
    this.#isOwn = isOwn;
  }

  resolve(...parameters: Parameters<Stack["resolve"]>): ReturnType<Stack["resolve"]> {
    const stack = this.#isOwn ? this.#stack : this.#stack.clone();
    this.#build(stack);
    return stack.resolve(...parameters);
  }

  concat(from: Parameters<Stack["concat"]>[0]): WalledStack {
    // Safe: the two differ in the types of their input and output, which the check does not look at.
    return new WalledStack(this.#stack.concat(from) as unknown as Stack, this.#check, true);
  }

  clone(): WalledStack {
    return new WalledStack(this.#stack.clone(), this.#check, true);
  }

  applyToStack(other: Stack): void {
    this.#stack.applyToStack(other);
    this.#build(other);
  }

  add(...parameters: Parameters<Stack["add"]>): void {
    this.#stack.add(...parameters);
  }

  addRelativeTo(...parameters: Parameters<Stack["addRelativeTo"]>): void {
    this.#stack.addRelativeTo(...parameters);
  }

  use(plugin: Parameters<Stack["use"]>[0]): void {
    this.#stack.use(plugin);
  }

  remove(middleware: Parameters<Stack["remove"]>[0]): boolean {
    return this.#stack.remove(middleware);
  }

  removeByTag(tag: string): boolean {
    return this.#stack.removeByTag(tag);
  }

  identify(): string[] {
    return this.#stack.identify();
  }

  identifyOnResolve(toggle?: boolean): boolean {
    return this.#stack.identifyOnResolve(toggle);
  }

  #build(stack: Stack): void {
    const check = this.#check;
    const wall =
      (next: (given: Given) => unknown, { commandName }: { readonly commandName?: string }) =>
      (given: Given) => {
        const error = check(commandName, given.input);
        return error === undefined ? next(given) : Promise.reject(error);
      };
    // Safe: a middleware takes the next one and the context of the command; its type is a union of those of five steps.
    stack.addRelativeTo(wall as unknown as Parameters<Stack["addRelativeTo"]>[0], {
      relation: "before",
      toMiddleware: "serializerMiddleware",
    });
  }
}
