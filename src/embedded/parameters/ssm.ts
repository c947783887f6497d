import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { type Clock, systemClock } from "../../base/process/clock.ts";
import { secretInFile } from "../service/development-secret.ts";
import {
  detected,
  type Input,
  operationOf,
  ServiceError,
  textReader,
  validationError,
} from "../service/service.ts";
import {
  checkName,
  isUnder,
  openParameterStore,
  type ParameterType,
  type StoredParameter,
} from "./parameter-store.ts";

const types: readonly unknown[] = [
  "String",
  "StringList",
  "SecureString",
] satisfies ParameterType[];
const longestValue = 4096;
const largestPage = 10;

interface Ssm {
  readonly store: ReturnType<typeof openParameterStore>;
  readonly sealer: ReturnType<typeof createSealer>;
  readonly clock: Clock;
  readonly region: string;
}

/** SecureStrings are encrypted on disk and without `WithDecryption`. */
export function openSsm({
  directory,
  clock = systemClock,
  region = "us-east-1",
}: {
  directory?: string | undefined;
  clock?: Clock;
  region?: string;
} = {}) {
  const secret = directory
    ? secretInFile(join(directory, "ssm-key"))
    : randomBytes(32).toString("base64url");
  const store = openParameterStore(directory && join(directory, "ssm.json"));
  const ssm: Ssm = { store, sealer: createSealer(secret), clock, region };
  return {
    targetPrefix: "AmazonSSM.",
    call: async (name: string, input: Input) => operationOf(operations, name)(ssm, input),
  };
}

const operations: Readonly<Record<string, (ssm: Ssm, input: Input) => object>> = {
  GetParameter: (ssm, input) => ({ Parameter: shown(ssm, existing(ssm, input), input) }),
  GetParameters(ssm, input) {
    const names = input["Names"];
    const isList = Array.isArray(names) && names.length >= 1 && names.length <= largestPage;
    if (!isList || names.some((name) => typeof name !== "string"))
      throw detected("'names' has to be a list of 1 to 10 names");
    const wanted = [...new Set<string>(names)];
    const found = wanted.flatMap((name) => ssm.store.get(name) ?? []);
    return {
      Parameters: found.map((parameter) => shown(ssm, parameter, input)),
      InvalidParameters: wanted.filter((name) => ssm.store.get(name) === undefined),
    };
  },
  GetParametersByPath(ssm, input) {
    const path = text(input, "Path");
    if (!path.startsWith("/"))
      throw validationError(
        "The parameter path must be a fully qualified name: it starts with a /",
      );
    const size = input["MaxResults"] ?? largestPage;
    if (typeof size !== "number" || !Number.isInteger(size) || size < 1 || size > largestPage)
      throw detected("'maxResults' has to be a whole number from 1 to 10");
    if (filtersOf(input).length > 0)
      throw validationError("The embedded stack has no ParameterFilters");
    const after = input["NextToken"] === undefined ? "" : nameOf(input["NextToken"]);
    const rest = ssm.store
      .all()
      .filter(({ name }) => name > after && isUnder(name, path, flag(input, "Recursive")));
    const page = rest.slice(0, size);
    const last = page.at(-1);
    return {
      Parameters: page.map((parameter) => shown(ssm, parameter, input)),
      NextToken: last && rest.length > page.length ? tokenOf(last.name) : undefined,
    };
  },
  /** By name only. The ID of a KMS key is stored and returned, but not used. */
  DescribeParameters({ store }, input) {
    const [filter, ...more] = filtersOf(input);
    const names = filter?.["Values"];
    const isByName = filter?.["Key"] === "Name" && filter["Option"] === "Equals";
    if (more.length > 0 || !isByName || !Array.isArray(names))
      throw validationError(
        "The embedded stack describes parameters by their names only: Key=Name,Option=Equals",
      );
    return {
      Parameters: names.flatMap((wanted: unknown) => {
        const found = store.get(String(wanted));
        if (found === undefined) return [];
        const { name, type, version, modifiedAt, keyId = "alias/aws/ssm" } = found;
        const KeyId = type === "SecureString" ? keyId : undefined;
        return [{ Name: name, Type: type, Version: version, LastModifiedDate: modifiedAt, KeyId }];
      }),
    };
  },
  PutParameter({ store, sealer, clock }, input) {
    const name = text(input, "Name");
    checkName(name);
    const value = text(input, "Value");
    if (value.length > longestValue)
      throw validationError(
        `Standard tier parameters support a maximum parameter value of ${longestValue} characters`,
      );
    const before = store.get(name);
    const type = typeToPut(input, before);
    const version = (before?.version ?? 0) + 1;
    const [description, keyId] = [input["Description"], input["KeyId"]];
    store.put({
      name,
      type,
      value: type === "SecureString" ? sealer.seal(value, placeOf(name, version)) : value,
      version,
      modifiedAt: clock.now() / 1000,
      description: typeof description === "string" ? description : undefined,
      keyId: typeof keyId === "string" ? keyId : undefined,
    });
    return { Version: version, Tier: "Standard" };
  },
  DeleteParameter(ssm, input) {
    ssm.store.delete(existing(ssm, input).name);
    return {};
  },
};

function filtersOf({ ParameterFilters: filters }: Input): readonly Input[] {
  return Array.isArray(filters) ? filters : [];
}

function typeToPut(input: Input, before: StoredParameter | undefined): ParameterType {
  const type = input["Type"] ?? before?.type;
  if (before !== undefined && !flag(input, "Overwrite"))
    throw new ServiceError(
      "ParameterAlreadyExists",
      "The parameter already exists. To overwrite this value, set the overwrite option in the request to true.",
    );
  if (type === undefined)
    throw validationError("A parameter type is required when you create a parameter.");
  if (!isType(type)) throw detected("'type' has to be String, StringList or SecureString");
  if (before !== undefined && before.type !== type)
    throw new ServiceError(
      "HierarchyTypeMismatchException",
      `The parameter is a ${before.type}, and a type cannot change`,
    );
  return type;
}

function existing({ store }: Ssm, input: Input) {
  const name = text(input, "Name");
  const parameter = store.get(name);
  if (parameter === undefined)
    throw new ServiceError("ParameterNotFound", `Parameter ${name.slice(0, 200)} not found.`);
  return parameter;
}

function shown(
  { sealer, region }: Ssm,
  { name, type, value, version, modifiedAt }: StoredParameter,
  input: Input,
) {
  const isOpened = type === "SecureString" && flag(input, "WithDecryption");
  return {
    Name: name,
    Type: type,
    Value: isOpened ? sealer.open(value, placeOf(name, version)) : value,
    Version: version,
    LastModifiedDate: modifiedAt,
    ARN: `arn:aws:ssm:${region}:000000000000:parameter${name.startsWith("/") ? "" : "/"}${name}`,
    DataType: "text",
  };
}

/** Authenticated, so that a value decrypts only under its own name and version. */
function placeOf(name: string, version: number) {
  return `${name}:${version}`;
}

function tokenOf(name: string) {
  return Buffer.from(name).toString("base64url");
}

function nameOf(token: unknown) {
  const name = typeof token === "string" ? Buffer.from(token, "base64url").toString() : "";
  if (name === "" || tokenOf(name) !== token)
    throw new ServiceError("InvalidNextToken", "The specified token isn't valid.");
  return name;
}

const { text } = textReader((member) =>
  detected(`'${member}' must be a string of at least 1 character`),
);

function flag(input: Input, member: string) {
  return input[member] === true;
}

function isType(value: unknown): value is ParameterType {
  return types.includes(value);
}

/** For development only: its key is never rotated. */
function createSealer(secret: string) {
  const key = createHash("sha256").update(secret).digest();
  return {
    seal(text: string, place: string) {
      const iv = randomBytes(12);
      const cipher = createCipheriv("aes-256-gcm", key, iv).setAAD(Buffer.from(place));
      const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString("base64");
    },
    open(sealed: string, place: string) {
      const bytes = Buffer.from(sealed, "base64");
      const [iv, tag] = [bytes.subarray(0, 12), bytes.subarray(12, 28)];
      const decipher = createDecipheriv("aes-256-gcm", key, iv)
        .setAAD(Buffer.from(place))
        .setAuthTag(tag);
      return decipher.update(bytes.subarray(28), undefined, "utf8") + decipher.final("utf8");
    },
  };
}
