/** First Node version that imports TypeScript without a flag, as in `engines`. */
const oldest = "22.18";

export function nodeTooOld(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = oldest.split(".").map(Number);
  const isOld = major === oldestMajor ? minor < oldestMinor : major < oldestMajor;
  return isOld
    ? `this command needs Node ${oldest} or newer, and this is Node ${version}`
    : undefined;
}
