/** Headers that are the framework's to set, whether a result or an error brings them. */
export const ownHeaders: readonly string[] = Object.freeze([
  "x-request-id",
  "x-keelson-config",
  "content-length",
  "transfer-encoding",
  "connection",
  "set-cookie",
]);
