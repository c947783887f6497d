export { GetParameterCommand, paginateGetParametersByPath, SSMClient } from "@aws-sdk/client-ssm";
