/** A command as a shell takes it: what is more than letters, digits and harmless signs is quoted. */
export function command(...words: readonly string[]): string {
  return words
    .map((word) => (bare.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(" ");
}

/** Not with `=` in front, which the Z shell looks up as a command. */
const bare = /^[\w.,:/@%+-][\w.,:=/@%+-]*$/;
