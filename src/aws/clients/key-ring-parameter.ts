import type { Parameter } from "@aws-sdk/client-ssm";
import { type ClientOptions, clientOptions } from "./client-options.ts";

export interface StoredKeyRing {
  readonly text: string;
  readonly version: number;
  /** Epoch milliseconds. */
  readonly changedMs: number;
}

type Members<Shape> = { [Name in keyof Shape]-?: NonNullable<Shape[Name]> };

export type KeyRingParameter = Awaited<ReturnType<typeof openKeyRingParameter>>;

export async function openKeyRingParameter(name: string, options: ClientOptions) {
  const sdk = await import("@aws-sdk/client-ssm");
  const client = new sdk.SSMClient(clientOptions(options));
  /** SSM encrypts a version without a KMS key with the account's default. */
  const kmsKey = async () => {
    const ParameterFilters = [{ Key: "Name", Option: "Equals", Values: [name] }];
    // SSM filters a page after it has cut it, so the first pages may be empty.
    const pages = sdk.paginateDescribeParameters({ client }, { ParameterFilters });
    for await (const { Parameters: [found] = [] } of pages) if (found) return found.KeyId;
    throw new Error(`the parameter ${name} no longer exists; create a ring with new keys`);
  };
  const put = (Value: string, more: { Overwrite?: true; KeyId: string | undefined }) =>
    client.send(new sdk.PutParameterCommand({ Name: name, Value, Type: "SecureString", ...more }));
  /** Returns `undefined` if there is no parameter. @throws Error if it is not a SecureString. */
  const read = async (Name = name): Promise<StoredKeyRing | undefined> => {
    try {
      const command = new sdk.GetParameterCommand({ Name, WithDecryption: true });
      const { Parameter } = await client.send(command);
      // Safe: SSM returns all members or an error.
      const { Type, Value, Version, LastModifiedDate } = Parameter as Members<Parameter>;
      if (Type === "SecureString")
        return { text: Value, version: Version, changedMs: LastModifiedDate.getTime() };
    } catch (error) {
      if (isNamed(error, "ParameterNotFound")) return undefined;
      throw error;
    }
    throw new Error(
      `the parameter ${name} is not a SecureString; delete it, and create a ring with new keys`,
    );
  };
  return {
    read: () => read(),
    /** Default of `KeyId`: the account's key. @throws Error if the parameter already exists. */
    create: async (text: string, KeyId: string | undefined): Promise<void> => {
      try {
        await put(text, { KeyId });
      } catch (error) {
        // The SDK repeats a call whose answer was lost, and no other ring has these keys.
        if (!isNamed(error, "ParameterAlreadyExists") || (await read())?.text !== text) throw error;
      }
    },
    /**
     * Adds a version, encrypted with the same KMS key. Returns whether it follows the version `seen`:
     * SSM has no conditional write, so only the new number reveals a concurrent change.
     */
    replace: async (text: string, seen: number): Promise<boolean> => {
      const added = Number((await put(text, { Overwrite: true, KeyId: await kmsKey() })).Version);
      // The SDK repeats a call whose answer was lost, so that the versions before may be the same.
      for (let version = seen + 1; version < added; version += 1) {
        const between = await read(`${name}:${version}`).catch(() => undefined);
        if (between?.text !== text) return false;
      }
      return added > seen;
    },
    close: () => client.destroy(),
  };
}

function isNamed(error: unknown, name: string): boolean {
  return error instanceof Error && error.name === name;
}
