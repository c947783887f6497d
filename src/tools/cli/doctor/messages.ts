import type { DeclaredServer } from "../../../app/registry/declared-server.ts";
import { usesMessages } from "../../../app/registry/registry.ts";
import { proofMode } from "../../../parts/messages/proof.ts";
import { createKeyRing } from "./command-line.ts";
import { type Check, doubtful, fine, type Outcome } from "./outcome.ts";

export function messageChecks(server: DeclaredServer): Check[] {
  return usesMessages(server.registry)
    ? [{ name: "proof of messages", run: async () => proofOutcome(server) }]
    : [];
}

function proofOutcome({ options, environment }: DeclaredServer): Outcome {
  // Outside production, keelson derives a key ring from the development secret.
  const mode = proofMode(
    options.messages?.proof,
    options.keyRing !== undefined || environment !== "production",
  );
  if (mode === "require")
    return fine("required: events and jobs not signed with the key ring are refused");
  const danger = "anybody who can write to a queue can act as any tenant";
  const wanted = 'set messages.proof of buildServer to "require"';
  if (mode === "sign") {
    return doubtful(
      `signed, but not required: ${danger}; once message.proof_missing is no longer logged, ${wanted}`,
    );
  }
  const message = `off: ${danger}; sign first, then ${wanted}`;
  return options.keyRing === undefined ? doubtful(message, createKeyRing()) : doubtful(message);
}
