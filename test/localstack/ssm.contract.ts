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
  console.log(`What no emulator shows of SSM:\n- ${notShownByEmulators.join("\n- ")}`),
);
