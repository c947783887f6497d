/** Headers that results and errors cannot set, because only keelson sets them. */
export const ownHeaders: readonly string[] = Object.freeze([
  "x-request-id",
  "x-keelson-config",
  "content-length",
  "transfer-encoding",
  "connection",
  "set-cookie",
]);
