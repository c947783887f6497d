// The function of the soak, for Lambda's own runtime, which does not look for .ts: run from the sources.
export { handler } from "./handler.ts";
