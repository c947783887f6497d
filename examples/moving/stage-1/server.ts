import { buildServer } from "keelson";

const { COGNITO_ISSUER: issuer, COGNITO_CLIENT: audience } = process.env;
if (!issuer || !audience) throw new Error("set COGNITO_ISSUER and COGNITO_CLIENT");

/**
 * Tokens of Cognito. A function uses the claims that the API's authorizer has verified; without an
 * authorizer, as from stage 4 on, keelson verifies the token itself.
 */
export const auth = {
  jwks: `${issuer}/.well-known/jwks.json`,
  issuer,
  audience,
  claims: { tenant: "custom:tenant_id", roles: "cognito:groups" },
};

export const server = buildServer({ features: [], auth });
