/**
 * Returns the identifier of a key (specification 2.1): `files` and `maxUploadSizeMb` give
 * `files:config:max-upload-size-mb`. Whether the name has a kebab-case form is for the
 * validators to say.
 */
export function configKeyId(feature: string, keyName: string): string {
  return `${feature}:config:${kebabCase(keyName)}`;
}

/** Whether `value` has the shape of an identifier. */
export function isKeyId(value: unknown): value is string {
  return (
    typeof value === "string" && /^(?=.{1,256}$)[a-z][a-z0-9-]*:config:[a-z][a-z0-9-]*$/.test(value)
  );
}

/** Whether a key's name gives an identifier of the shape `<feature>:config:<kebab-case-name>`. */
export function hasKebabCase(keyName: string): boolean {
  return /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/.test(kebabCase(keyName));
}

/** `maxURLLength` -> `max-url-length`: a capital begins a word, a run of them is one. */
function kebabCase(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1-$2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1-$2")
    .toLowerCase();
}
