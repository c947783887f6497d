/** First Node version that imports TypeScript without a flag, as in `engines`. */
const oldest = [22, 18] as const;

export function nodeTooOld(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major > oldest[0] || (major === oldest[0] && minor >= oldest[1])) return undefined;
  return `this command needs Node ${oldest.join(".")} or newer, and this is Node ${version}`;
}
