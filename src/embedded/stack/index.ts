export { developmentSecret } from "../service/development-secret.ts";
export { type EmbeddedStack, type EmbeddedStackOptions, startEmbeddedStack } from "./stack.ts";
