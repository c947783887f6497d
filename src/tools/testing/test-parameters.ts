import type { EmbeddedStack } from "../../embedded/stack/index.ts";

export async function putParameters(
  stack: EmbeddedStack,
  parameters: Readonly<Record<string, string>>,
  type: "String" | "SecureString",
): Promise<void> {
  const entries = Object.entries(parameters);
  if (entries.length === 0) return;
  const { PutParameterCommand, SSMClient } = await import("@aws-sdk/client-ssm");
  const client = new SSMClient({
    endpoint: stack.endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "embedded", secretAccessKey: "embedded" },
  });
  try {
    for (const [Name, Value] of entries) {
      await client.send(new PutParameterCommand({ Name, Value, Type: type }));
    }
  } finally {
    client.destroy();
  }
}
