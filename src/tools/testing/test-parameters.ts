import { accountOf } from "../../aws/adapters/adapters.ts";
import { clientOptions } from "../../aws/clients/client-options.ts";
import type { EmbeddedStack } from "../../embedded/stack/index.ts";

export async function putParameters(
  { endpoint, env }: EmbeddedStack,
  parameters: Readonly<Record<string, string>>,
  Type: "String" | "SecureString",
): Promise<void> {
  const entries = Object.entries(parameters);
  if (entries.length === 0) return;
  const { PutParameterCommand, SSMClient } = await import("@aws-sdk/client-ssm");
  const client = new SSMClient(clientOptions({ endpoint, ...accountOf(env) }));
  try {
    for (const [Name, Value] of entries)
      await client.send(new PutParameterCommand({ Name, Value, Type }));
  } finally {
    client.destroy();
  }
}
