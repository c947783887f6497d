/**
 * Returns the identifier of a key (specification 2.1): `files:config:max-upload-size-mb` for
 * `maxUploadSizeMb` of `files`.
 */
export function configKeyId(feature: string, keyName: string): string {
  return `${feature}:config:${kebabCase(keyName)}`;
}

export function isKeyId(value: unknown): value is string {
  return (
    typeof value === "string" && /^(?=.{1,256}$)[a-z][a-z0-9-]*:config:[a-z][a-z0-9-]*$/.test(value)
  );
}

export function hasKebabCase(keyName: string): boolean {
  return /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/.test(kebabCase(keyName));
}

/** Converts `maxURLLength` to `max-url-length`: consecutive capitals are one word. */
function kebabCase(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1-$2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1-$2")
    .toLowerCase();
}
