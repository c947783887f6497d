/**
 * Formats a shell command. Quotes every word that contains more than letters, digits and harmless
 * punctuation.
 */
export function command(...words: readonly string[]): string {
  return words
    .map((word) => (bare.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(" ");
}

/**
 * Matches words that need no quotes. Excludes a leading `=`, because the Z shell expands `=word` to
 * the path of a command.
 */
const bare = /^[\w.,:/@%+-][\w.,:=/@%+-]*$/;

export function keelson(...words: readonly string[]): string {
  return command("npx", "keelson", ...words);
}

export function createKeyRing(parameter = "/app/key-ring"): string {
  return keelson("key-ring", "create", "--parameter", parameter);
}
