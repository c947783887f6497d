/**
 * Replaces line breaks and other control characters by spaces, so foreign input stays on one line.
 */
export function oneLine(text: string): string {
  return text.replaceAll(/\p{C}+/gu, " ");
}
