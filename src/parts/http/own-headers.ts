/** Headers that only keelson sets. Results and errors cannot set them. */
export const ownHeaders: readonly string[] = Object.freeze([
  "x-request-id",
  "x-keelson-config",
  "content-length",
  "transfer-encoding",
  "connection",
  "set-cookie",
]);
