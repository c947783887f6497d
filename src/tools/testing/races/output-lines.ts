import { format } from "node:util";

const methods = ["debug", "error", "info", "log", "trace", "warn"] as const;

/**
 * Passes all output of the process to the console, stdout and stderr to `take`. If it returns
 * `false`, the output is written.
 *
 * @returns a function that ends this.
 */
export function takeOutput(take: (text: string) => boolean): () => void {
  const undo: (() => void)[] = [];
  for (const stream of [process.stdout, process.stderr]) {
    const write = stream.write.bind(stream);
    const own = Object.getOwnPropertyDescriptor(stream, "write");
    // Safe cast: the parameters after the text are passed on or called.
    stream.write = ((text: string | Uint8Array, ...rest: unknown[]) => {
      if (!take(Buffer.from(text).toString())) return write(text, ...(rest as []));
      const done = rest.find((value) => typeof value === "function");
      done?.();
      return true;
    }) as typeof stream.write;
    undo.push(() => {
      if (own === undefined) Reflect.deleteProperty(stream, "write");
      else Object.defineProperty(stream, "write", own);
    });
  }
  for (const method of methods) {
    const original = console[method];
    console[method] = (...values: unknown[]) => {
      if (!take(`${format(...values)}\n`)) original.apply(console, values);
    };
    undo.push(() => {
      console[method] = original;
    });
  }
  return () => {
    for (const one of undo) one();
  };
}
