/** What others have written is not to command the terminal. */
export function oneLine(text: string): string {
  return text.replaceAll(/\p{C}+/gu, " ");
}
