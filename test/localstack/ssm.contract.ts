import { SSMClient } from "@aws-sdk/client-ssm";
import { afterAll } from "vitest";
import { describeSsmContract, notShownByEmulators } from "../embedded/ssm-contract.ts";
import { localStack } from "./endpoint.ts";

describeSsmContract(
  "LocalStack",
  async () => {
    const client = new SSMClient(localStack());
    return { client, close: async () => client.destroy() };
  },
  { seals: false, keepsTypes: false, checksInput: false },
);

afterAll(() =>
  console.log(
    `Behaviour of SSM that emulators do not show:\n- ${notShownByEmulators.join("\n- ")}`,
  ),
);
