/** A command as a shell takes it: what is more than letters, digits and harmless signs is quoted. */
export function command(...words: readonly string[]): string {
  return words.map((word) => (/^[\w.,:=/@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}
