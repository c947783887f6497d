/** Parts of the SSM SDK that functions and servers use; see `dynamodb-sdk.ts`. */
export { GetParameterCommand, paginateGetParametersByPath, SSMClient } from "@aws-sdk/client-ssm";
