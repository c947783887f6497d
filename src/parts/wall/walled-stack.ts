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
  return walled(stack, walling, false);
}

/** `isOwn`: no other code has the stack, so that the check can be added without cloning it. */
function walled(stack: Stack, walling: Walling, isOwn: boolean): Stack {
  // Members are listed, so that one that the SDK adds cannot go around the check. No member uses `this`.
  const { add, addRelativeTo, use, remove, removeByTag, identify, identifyOnResolve } = stack;
  return {
    add,
    addRelativeTo,
    use,
    remove,
    removeByTag,
    identify,
    identifyOnResolve,
    resolve: (handler, context) => {
      const checked = isOwn ? stack : stack.clone();
      addCheck(checked, walling);
      return checked.resolve(handler, context);
    },
    // The casts are safe: the types differ only in input and output, which the check does not use.
    concat: (from) => walled(stack.concat(from) as unknown as Stack, walling, true) as never,
    clone: () => walled(stack.clone(), walling, true),
    applyToStack: (other) => {
      stack.applyToStack(other);
      addCheck(other, walling);
    },
  };
}

type Given = { readonly input: unknown };
type Sent = { readonly request: unknown };

function addCheck(stack: Stack, { check, open }: Walling): void {
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

type Relative = Parameters<Stack["addRelativeTo"]>[0];
