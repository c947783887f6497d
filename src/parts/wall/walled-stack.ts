import type { Database } from "../../base/types/database.ts";
import type { OpenSession, SignAsSession } from "./isolation.ts";

/** The middlewares of a client. */
export type Stack = Database["middlewareStack"];

/**
 * Says why a command is not sent; `undefined` for one that is. `operation` is the command's name, such as `GetItemCommand`, and
 * `input` as it is about to be written out.
 */
export type InputCheck = (operation: string, input: unknown) => Error | undefined;

/** What is done with a command before it is sent. */
export interface Walling {
  readonly check: InputCheck;
  /** Opens the session as which it is signed; absent where everything is signed with the process's own credentials. */
  readonly open?: OpenSession | undefined;
}

/**
 * Puts a check around the middlewares of a client. Every command asks its client's middlewares to resolve it, whoever's `send` it
 * goes through, and here they add the check as the last before it is written out: it sees what is sent, whatever other middlewares
 * have made of it and whatever becomes of the caller's objects meanwhile.
 *
 * A command that needs a session is signed a second time, behind the SDK's own signature: the SDK has one set of credentials a client,
 * and a client for each tenant would have connections, caches and memory of its own.
 */
export function walledStack(stack: Stack, walling: Walling): Stack {
  return new WalledStack(stack, walling, false) as unknown as Stack; // safe: it has each member; what a clone's type adds, none has
}

interface Given {
  readonly input: unknown;
}

interface Sent {
  readonly request: unknown;
}

class WalledStack {
  readonly #stack: Stack;
  readonly #walling: Walling;
  /** Whether the stack is nobody else's, so that it may take the check itself. */
  readonly #isOwn: boolean;

  constructor(stack: Stack, walling: Walling, isOwn: boolean) {
    this.#stack = stack;
    this.#walling = walling;
    this.#isOwn = isOwn;
  }

  resolve(...parameters: Parameters<Stack["resolve"]>): ReturnType<Stack["resolve"]> {
    const stack = this.#isOwn ? this.#stack : this.#stack.clone();
    this.#build(stack);
    return stack.resolve(...parameters);
  }

  concat(from: Parameters<Stack["concat"]>[0]): WalledStack {
    // Safe: the two differ in the types of their input and output, which the check does not look at.
    return new WalledStack(this.#stack.concat(from) as unknown as Stack, this.#walling, true);
  }

  clone(): WalledStack {
    return new WalledStack(this.#stack.clone(), this.#walling, true);
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
    const { check, open } = this.#walling;
    let sign: SignAsSession | undefined;
    const wall =
      (next: (given: Given) => unknown, { commandName }: { readonly commandName?: string }) =>
      (given: Given) => {
        const operation = String(commandName).replace(/Command$/, "");
        const error = check(operation, given.input);
        if (error !== undefined) return Promise.reject(error);
        const opening = open?.(operation, given.input);
        if (opening === undefined) return next(given);
        return opening.then((opened) => {
          sign = opened;
          return next(given);
        });
      };
    // Safe, twice: a middleware takes the next one and the context of the command; its type is a union of those of five steps.
    stack.addRelativeTo(wall as unknown as Relative, {
      relation: "before",
      toMiddleware: "serializerMiddleware",
    });
    if (open === undefined) return;
    const signing = (next: (sent: Sent) => unknown) => (sent: Sent) => {
      sign?.(sent.request);
      return next(sent);
    };
    stack.addRelativeTo(signing as unknown as Relative, {
      relation: "after",
      toMiddleware: "httpSigningMiddleware",
    });
  }
}

type Relative = Parameters<Stack["addRelativeTo"]>[0];
