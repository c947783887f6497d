import type { Database } from "../../base/types/database.ts";
import type { OpenSession, SignAsSession } from "./isolation.ts";

export type Stack = Database["middlewareStack"];

interface Walling {
  readonly check: (operation: string, input: unknown) => Error | undefined;
  /** Opens a command's session; absent if the process's own credentials sign every command. */
  readonly open?: OpenSession | undefined;
}

/**
 * Wraps the middlewares of a client with a check. Whichever `send` is called, the client's
 * middlewares resolve the command, and this stack then adds the check as the last step before
 * serialization. So the check sees exactly the input that is sent, regardless of other middlewares
 * and of later changes to the caller's objects.
 *
 * A command that needs a session is signed again after the SDK's own signature: a client has one
 * set of credentials, and a client per tenant would need separate connections, caches and memory.
 */
export function walledStack(stack: Stack, walling: Walling): Stack {
  return new WalledStack(stack, walling, false) as unknown as Stack; // the cast is safe: it has every member that a stack has at run time
}

type Given = { readonly input: unknown };
type Sent = { readonly request: unknown };

class WalledStack {
  readonly #stack: Stack;
  readonly #walling: Walling;
  /** Whether no other code has the stack, so that the check can be added without cloning it. */
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
    // The cast is safe: the types differ only in input and output, which the check does not use.
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
    // Both casts to `Relative` are safe: a middleware takes the next middleware and the command's
    // context; the declared type is a union over five steps.
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
