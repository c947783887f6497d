/** Keeps foreign input on one line: replaces control characters with spaces. */
export function oneLine(text: string): string {
  return text.replaceAll(/\p{C}+/gu, " ");
}
