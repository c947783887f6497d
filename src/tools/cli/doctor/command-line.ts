/** Formats a shell command. Quotes words with characters that a shell might interpret. */
export function command(...words: readonly string[]): string {
  return words
    .map((word) => (bare.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(" ");
}

/** Excludes a leading `=`, because the Z shell expands `=word` to the path of a command. */
const bare = /^[\w.,:/@%+-][\w.,:=/@%+-]*$/;

export function keelson(...words: readonly string[]): string {
  return command("npx", "keelson", ...words);
}

export function createKeyRing(parameter = "/app/key-ring"): string {
  return keelson("key-ring", "create", "--parameter", parameter);
}
