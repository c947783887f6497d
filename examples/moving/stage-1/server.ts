import { buildServer } from "keelson";

const issuer =
  process.env["COGNITO_ISSUER"] ?? "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_example";

/**
 * Tokens of Cognito. A function uses the claims that the API's authorizer has verified; without an
 * authorizer, as in a container, keelson verifies the token itself.
 */
export const auth = {
  jwks: `${issuer}/.well-known/jwks.json`,
  issuer,
  audience: process.env["COGNITO_CLIENT"] ?? "example",
  claims: { tenant: "custom:tenant_id", roles: "cognito:groups" },
};

export const server = buildServer({ features: [], auth });
