/** What functions and servers use of the SSM SDK; see `dynamodb-sdk.ts`. */
export { GetParameterCommand, paginateGetParametersByPath, SSMClient } from "@aws-sdk/client-ssm";
