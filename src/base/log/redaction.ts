export interface Member {
  /** `"name":`, bounded and escaped. */
  readonly json: string;
  readonly secret: boolean;
}

/** Position within the application's paths, empty if no path matches here or below. */
export type PathPosition = readonly PathNode[];

export interface Redaction {
  readonly root: PathPosition;
  member(name: string): Member;
  isSecretName(name: unknown): boolean;
}

interface PathNode {
  readonly next: Map<string, PathNode>;
  isEnd: boolean;
}

/**
 * Names redacted at any depth, in any case, with or without word separators: `set-cookie`,
 * `api_key`, `apiKey`.
 */
const secretNames: ReadonlySet<string> = new Set([
  ...["authorization", "proxyauthorization", "cookie", "cookies", "setcookie", "bearer", "jwt"],
  ...["token", "idtoken", "clientassertion"],
]);
/**
 * Endings of redacted names, singular or plural: `clientSecret`, `db_passwords`,
 * `AWS_SECRET_ACCESS_KEY`, but not `nextToken`.
 */
const secretEnds = [
  ...["secret", "password", "passwd", "pwd", "passphrase", "credential"],
  ...["apikey", "privatekey", "secretkey", "secretaccesskey", "signingkey", "encryptionkey"],
  ...["apitoken", "authtoken", "accesstoken", "refreshtoken", "sessiontoken"],
  ...["bearertoken", "securitytoken", "csrftoken", "xsrftoken"],
];
const longestSecretEnd = 64;
const maxRememberedNames = 1_000;
const maxRememberedLength = 64;
const maxNameLength = 256;

/**
 * Redacts secret names, and `paths`: dotted paths that start at a field of the record. `*` matches
 * any one name, and the name of an item is its index.
 */
export function createRedaction(paths: readonly string[] = []): Redaction {
  const start: PathNode = { next: new Map(), isEnd: false };
  for (const path of paths) addPath(start, path);
  const remembered = new Map<string, Member>();

  const learn = (name: string): Member => {
    const member = { json: `${quoted(cut(name, maxNameLength))}:`, secret: isSecretName(name) };
    if (remembered.size < maxRememberedNames && name.length <= maxRememberedLength)
      remembered.set(name, member);
    return member;
  };
  return {
    root: paths.length === 0 ? [] : [start],
    member: (name) => remembered.get(name) ?? learn(name),
    isSecretName,
  };
}

export function stepInto(position: PathPosition, name: string): PathPosition {
  if (position.length === 0) return position;
  const reached: PathNode[] = [];
  for (const node of position) {
    const named = node.next.get(name);
    const any = node.next.get("*");
    if (named !== undefined) reached.push(named);
    if (any !== undefined) reached.push(any);
  }
  return reached;
}

/** Whether one of the application's paths ends here. */
export function endsPath(position: PathPosition): boolean {
  return position.length > 0 && position.some((node) => node.isEnd);
}

function addPath(start: PathNode, path: string): void {
  let node = start;
  for (const name of path.split(".")) {
    const next = node.next.get(name) ?? { next: new Map(), isEnd: false };
    node.next.set(name, next);
    node = next;
  }
  node.isEnd = true;
}

function isSecretName(name: unknown): boolean {
  if (typeof name !== "string") return false;
  const plain = name
    .slice(-longestSecretEnd)
    .toLowerCase()
    .replaceAll(/[-_.\s]/g, "");
  if (secretNames.has(plain)) return true;
  const one = plain.endsWith("s") ? plain.slice(0, -1) : plain;
  return secretEnds.some((end) => one.endsWith(end));
}

/**
 * Quotes text as a JSON string of valid UTF-8 that cannot affect a terminal or imitate the end of a
 * line: escapes control characters, U+2028, U+2029, marks that reorder text and lone surrogates.
 */
export function quoted(text: string): string {
  return harmless.test(text) ? `"${text}"` : JSON.stringify(text).replace(hidden, escaped);
}

/** Escapes what `quoted` escapes, except `"` and `\`. For lines that people read. */
export function visible(text: string): string {
  return text.replace(controls, escaped).replace(hidden, escaped).replace(loneSurrogates, escaped);
}

/** Cuts a string to `length` UTF-16 code units, but never within a surrogate pair. */
export function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  const end = last >= 0xd800 && last <= 0xdbff ? length - 1 : length;
  return `${text.slice(0, end)}...[${text.length - end} characters cut]`;
}

/** Strings that only need quotes to become JSON. Four times as fast as `JSON.stringify`. */
export const harmless = /^[ !#-[\]-~]*$/;
/**
 * Characters that `JSON.stringify` does not escape although they can end a line or affect a
 * terminal: DEL, C1, separators, direction marks, BOM.
 */
const hidden = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
const controls = /\p{Cc}/gu;
const loneSurrogates = /\p{Surrogate}/gu;

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
