import type { BootProblem } from "../errors/boot.ts";
import type { MessageProof, ServerOptions } from "./options.ts";
import { serverProblem } from "./registry.ts";

/** What a server does about the proofs of messages, with a key ring or without. */
export function proofMode({ messages }: ServerOptions, hasRing: boolean): MessageProof {
  return messages?.proof ?? (hasRing ? "sign" : "off");
}

/** What is asked for and cannot be done. */
export function proofProblems(options: ServerOptions, hasRing: boolean): BootProblem[] {
  const proof = options?.messages?.proof;
  if (hasRing || (proof !== "sign" && proof !== "require")) return [];
  const message = `${JSON.stringify(proof)} takes a key ring, and there is none`;
  const fix = "name one as keyRing.parameter, made with keelson key-ring create";
  return [serverProblem("messages.proof", "proof-key-ring", message, fix)];
}
