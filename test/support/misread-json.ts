/**
 * Whether JSON of `value` has a name of one character that is written with a backslash. V8 reads any of them as `\` once it has read
 * that one as a name: https://github.com/nodejs/node/issues/63785. What goes through JSON and back is then another value.
 */
export function isMisread(value: unknown): boolean {
  return /"\\(?:u[\da-f]{4}|[^u])":/.test(JSON.stringify(value));
}
