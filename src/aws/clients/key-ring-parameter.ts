import { type ClientOptions, clientOptions } from "./client-options.ts";

export interface StoredKeyRing {
  readonly text: string;
  readonly version: number;
  /** Epoch milliseconds. */
  readonly changedMs: number;
}

export type KeyRingParameter = Awaited<ReturnType<typeof openKeyRingParameter>>;

interface ReadParameter {
  readonly Type: string;
  readonly Value: string;
  readonly Version: number;
  readonly LastModifiedDate: Date;
}

export async function openKeyRingParameter(name: string, options: ClientOptions) {
  const { DescribeParametersCommand, GetParameterCommand, PutParameterCommand, SSMClient } =
    await import("@aws-sdk/client-ssm");
  const client = new SSMClient(clientOptions(options));
  /** Returns the KMS key in use. SSM encrypts a version without a key with the account's default. */
  const kmsKey = async () => {
    const ParameterFilters = [{ Key: "Name", Option: "Equals", Values: [name] }];
    const { Parameters } = await client.send(new DescribeParametersCommand({ ParameterFilters }));
    // Safe: `read` has found a SecureString, which always has a key.
    const [{ KeyId }] = Parameters as [{ KeyId: string }];
    return KeyId;
  };
  const put = (Value: string, more: { Overwrite?: true; KeyId: string | undefined }) =>
    client.send(new PutParameterCommand({ Name: name, Value, Type: "SecureString", ...more }));
  return {
    /** Returns `undefined` if there is no parameter. @throws Error if it is no SecureString. */
    read: async (): Promise<StoredKeyRing | undefined> => {
      try {
        const { Parameter } = await client.send(
          new GetParameterCommand({ Name: name, WithDecryption: true }),
        );
        // Safe: SSM returns all members or an error.
        const { Type, Value, Version, LastModifiedDate } = Parameter as ReadParameter;
        if (Type === "SecureString")
          return { text: Value, version: Version, changedMs: LastModifiedDate.getTime() };
      } catch (error) {
        if (error instanceof Error && error.name === "ParameterNotFound") return undefined;
        throw error;
      }
      throw new Error(
        `the parameter ${name} is no SecureString; delete it, and make a ring with new keys`,
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
