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
  return {
    /** Returns `undefined` if there is no parameter. @throws Error if it is not a SecureString. */
    read: async (): Promise<StoredKeyRing | undefined> => {
      try {
        const command = new sdk.GetParameterCommand({ Name: name, WithDecryption: true });
        const { Parameter } = await client.send(command);
        // Safe: SSM returns all members or an error.
        const { Type, Value, Version, LastModifiedDate } = Parameter as Members<Parameter>;
        if (Type === "SecureString")
          return { text: Value, version: Version, changedMs: LastModifiedDate.getTime() };
      } catch (error) {
        if (error instanceof Error && error.name === "ParameterNotFound") return undefined;
        throw error;
      }
      throw new Error(
        `the parameter ${name} is not a SecureString; delete it, and create a ring with new keys`,
      );
    },
    /** Default of `KeyId`: the account's key. @throws Error if the parameter already exists. */
    create: async (text: string, KeyId: string | undefined): Promise<void> => {
      await put(text, { KeyId });
    },
    /** Adds a version, encrypted with the same KMS key, and returns its number. */
    replace: async (text: string) =>
      Number((await put(text, { Overwrite: true, KeyId: await kmsKey() })).Version),
    close: () => client.destroy(),
  };
}
