/** What others have written, as a part of a line: it does not begin one of its own. What acts on a terminal is escaped where it is printed. */
export function oneLine(text: string): string {
  return text.replaceAll(/\p{C}+/gu, " ");
}
