import type { EmbeddedStack } from "../embedded/index.ts";

/** Puts parameters into the SSM of a stack. */
export async function putParameters(stack: EmbeddedStack, parameters: Readonly<Record<string, string>>): Promise<void> {
  const { PutParameterCommand, SSMClient } = await import("@aws-sdk/client-ssm");
  const client = new SSMClient({
    endpoint: stack.endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "embedded", secretAccessKey: "embedded" },
  });
  try {
    for (const [Name, Value] of Object.entries(parameters)) {
      await client.send(new PutParameterCommand({ Name, Value, Type: "String" }));
    }
  } finally {
    client.destroy();
  }
}
