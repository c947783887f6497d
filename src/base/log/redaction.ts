import { cut, quoted } from "./quoted-text.ts";

/** A name as it stands in a line. */
export interface Member {
  /** `"name":`, bounded and escaped. */
  readonly json: string;
  /** Whether its value is redacted wherever it stands. */
  readonly secret: boolean;
}

/** Where in the application's paths a value stands. Empty: no path leads here or further. */
export type PathPosition = readonly PathNode[];

/** Decides which values are written as `[redacted]`. */
export interface Redaction {
  /** Where the fields of a record stand. */
  readonly root: PathPosition;
  /** How a name is written; remembers the names it has seen, up to a bound. */
  member(name: string): Member;
  /** Whether the value that goes with this name is redacted wherever it stands. */
  isSecretName(name: unknown): boolean;
}

interface PathNode {
  readonly next: Map<string, PathNode>;
  isEnd: boolean;
}

/** Redacted at any depth, in any case, with or without what joins words: `set-cookie`, `api_key`, `apiKey`. */
const secretNames: ReadonlySet<string> = new Set([
  ...[
    "authorization",
    "proxyauthorization",
    "cookie",
    "setcookie",
    "bearer",
    "jwt",
    "token",
    "idtoken",
    "clientassertion",
  ],
]);
/** So are names that end so, of one or of many: `clientSecret`, `db_passwords`, `AWS_SECRET_ACCESS_KEY`, but not `nextToken`. */
const secretEnds = [
  ...["secret", "password", "passwd", "pwd", "passphrase", "credential"],
  ...["apikey", "privatekey", "secretkey", "secretaccesskey", "signingkey", "encryptionkey"],
  ...[
    "apitoken",
    "authtoken",
    "accesstoken",
    "refreshtoken",
    "sessiontoken",
    "bearertoken",
    "securitytoken",
    "csrftoken",
    "xsrftoken",
  ],
];
/** How much of a long name is looked at, in characters. */
const longestSecretEnd = 64;
const maxRememberedNames = 1_000;
const maxRememberedLength = 64;
/** Names longer than this many characters are cut. */
const maxNameLength = 256;

/**
 * Creates the rules of redaction.
 *
 * @param paths dotted, from a field of the record downwards; `*` stands for any one name, and an item's
 *   index is its name. Beside the names redacted always.
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

/** One name further down. */
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
