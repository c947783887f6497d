/**
 * Keeps foreign input from starting a new line. The printer escapes sequences that act on a
 * terminal.
 */
export function oneLine(text: string): string {
  return text.replaceAll(/\p{C}+/gu, " ");
}
