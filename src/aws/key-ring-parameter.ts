import { type ClientOptions, clientOptions } from "./client-options.ts";

/** The SSM parameter of a key ring, for the tools that change it. */
export interface KeyRingParameter {
  /** Its text, decrypted; `undefined` where there is no such parameter. @throws Error where it is no SecureString. */
  read(): Promise<string | undefined>;
  /** Makes the parameter. @throws Error where it is there already. */
  create(text: string): Promise<void>;
  /** Replaces its text. */
  replace(text: string): Promise<void>;
  close(): void;
}

/** Opens the parameter `name`, a SecureString of the account's own key (`alias/aws/ssm`). */
export async function openKeyRingParameter(name: string, options: ClientOptions): Promise<KeyRingParameter> {
  const { GetParameterCommand, PutParameterCommand, SSMClient } = await import("@aws-sdk/client-ssm");
  const client = new SSMClient(clientOptions(options));
  const put = async (text: string, overwrite: boolean) => {
    await client.send(
      new PutParameterCommand({ Name: name, Value: text, Overwrite: overwrite, ...(overwrite ? {} : { Type: "SecureString" }) }),
    );
  };
  return {
    read: async () => {
      try {
        const { Parameter } = await client.send(new GetParameterCommand({ Name: name, WithDecryption: true }));
        if (Parameter?.Type === "SecureString") return Parameter.Value;
      } catch (error) {
        if (error instanceof Error && error.name === "ParameterNotFound") return undefined;
        throw error;
      }
      throw new Error(`the parameter ${name} is no SecureString; delete it, and make a ring with new keys`);
    },
    create: (text) => put(text, false),
    replace: (text) => put(text, true),
    close: () => client.destroy(),
  };
}
