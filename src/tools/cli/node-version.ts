/** The oldest Node that imports TypeScript without a flag. `engines` says the same. */
const oldest = "22.18";

/** What to tell whoever runs the command with a Node that is too old; `undefined` where it is not. */
export function nodeTooOld(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = oldest.split(".").map(Number);
  const isOld = major === oldestMajor ? minor < oldestMinor : major < oldestMajor;
  return isOld
    ? `this command needs Node ${oldest} or newer, and this is Node ${version}`
    : undefined;
}
