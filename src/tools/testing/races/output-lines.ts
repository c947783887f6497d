import { format } from "node:util";
import { replaced } from "./replaced.ts";

const methods = ["debug", "error", "info", "log", "trace", "warn"] as const;

/**
 * Passes all output of the process to the console, stdout and stderr to `take`. If it returns
 * `false`, the output is written.
 *
 * @returns a function that ends this.
 */
export function takeOutput(take: (text: string) => boolean): () => void {
  const streams = [process.stdout, process.stderr].map((stream) => {
    const write = stream.write.bind(stream);
    const taking = (text: string | Uint8Array, ...rest: unknown[]) => {
      // Safe cast: the parameters after the text are passed on.
      if (!take(Buffer.from(text).toString())) return write(text, ...(rest as []));
      const done = rest.find((value) => typeof value === "function");
      done?.();
      return true;
    };
    return [stream, "write", taking] as const;
  });
  const printing = methods.map((method) => {
    const original = console[method];
    const taking = (...values: unknown[]) => {
      if (!take(`${format(...values)}\n`)) original.apply(console, values);
    };
    return [console, method, taking] as const;
  });
  return replaced(...streams, ...printing);
}
