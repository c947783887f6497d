import type { DeadLetter, DeadLetters } from "../../../aws/messaging/dead-letters.ts";
import type { CommandContext } from "../setup/define-command.ts";

/** Whether the letter stays in its queue, and whether it was the last one to visit. */
export type Visited = "kept" | "gone" | "last kept" | "last";

/**
 * Reads letters until one was the last, then makes those that stay visible again. A letter that
 * is redelivered during a long read is not visited again, and a batch of only such letters ends it.
 *
 * @returns the number of letters that it visited; {@link DeadLetters.count} counts all.
 */
export async function visit(
  letters: Pick<DeadLetters, "read" | "release">,
  { progress, stopping }: Pick<CommandContext, "progress" | "stopping">,
  act: (letter: DeadLetter) => Promise<Visited>,
): Promise<number> {
  const kept = new Map<string, DeadLetter>();
  const visited = new Set<string>();
  const signal = stopping?.();
  try {
    for await (const batch of letters.read()) {
      for (const letter of batch) kept.set(letter.id, letter);
      const unknown = batch.filter(({ id }) => !visited.has(id));
      if (unknown.length === 0) break;
      for (const letter of unknown) {
        signal?.throwIfAborted();
        visited.add(letter.id);
        progress?.(`${visited.size} dead letters read`);
        const end = await act(letter);
        if (!end.endsWith("kept")) kept.delete(letter.id);
        if (end.startsWith("last")) return visited.size;
      }
    }
  } finally {
    progress?.("");
    await letters.release([...kept.values()]);
  }
  return visited.size;
}
