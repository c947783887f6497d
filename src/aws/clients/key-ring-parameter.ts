import { type ClientOptions, clientOptions } from "./client-options.ts";

/** What the parameter of a key ring holds. */
export interface StoredKeyRing {
  /** Decrypted. */
  readonly text: string;
  /** Grows by one with each change. */
  readonly version: number;
  /** When it was changed last, in milliseconds since the epoch. */
  readonly changedMs: number;
}

/** The SSM parameter of a key ring, for the tools that change it. */
export interface KeyRingParameter {
  /** `undefined` where there is no such parameter. @throws Error where it is no SecureString. */
  read(): Promise<StoredKeyRing | undefined>;
  /** Makes the parameter, encrypted with the key of KMS, by default the account's own. @throws Error where it is there already. */
  create(text: string, kmsKey: string | undefined): Promise<void>;
  /**
   * Replaces its text, under the key of KMS that it has, and returns its version then.
   *
   * @throws Error where the parameter cannot be written.
   */
  replace(text: string): Promise<number>;
  close(): void;
}

interface ReadParameter {
  readonly Type: string;
  readonly Value: string;
  readonly Version: number;
  readonly LastModifiedDate: Date;
}

/** Opens the parameter `name`, a SecureString. */
export async function openKeyRingParameter(
  name: string,
  options: ClientOptions,
): Promise<KeyRingParameter> {
  const { DescribeParametersCommand, GetParameterCommand, PutParameterCommand, SSMClient } =
    await import("@aws-sdk/client-ssm");
  const client = new SSMClient(clientOptions(options));
  /** Without its name SSM would take the account's own key for the new version. */
  const kmsKey = async () => {
    const ParameterFilters = [{ Key: "Name", Option: "Equals", Values: [name] }];
    const { Parameters } = await client.send(new DescribeParametersCommand({ ParameterFilters }));
    // Safe: a SecureString that was read a moment ago has one.
    const [{ KeyId }] = Parameters as [{ KeyId: string }];
    return KeyId;
  };
  return {
    read: async () => {
      try {
        const { Parameter } = await client.send(
          new GetParameterCommand({ Name: name, WithDecryption: true }),
        );
        // Safe: SSM answers all of them, or with an error.
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
    create: async (text, key) => {
      const given = key === undefined ? {} : { KeyId: key };
      await client.send(
        new PutParameterCommand({ Name: name, Value: text, Type: "SecureString", ...given }),
      );
    },
    replace: async (text) => {
      const KeyId = await kmsKey();
      const command = new PutParameterCommand({
        Name: name,
        Value: text,
        Type: "SecureString",
        Overwrite: true,
        KeyId,
      });
      return Number((await client.send(command)).Version);
    },
    close: () => client.destroy(),
  };
}
