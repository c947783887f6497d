export { developmentSecret } from "./development-secret.ts";
export { type EmbeddedStack, type EmbeddedStackOptions, startEmbeddedStack } from "./stack.ts";
