import { isTypedError, PipelineError } from "../../base/errors/errors.ts";
import type { AuthOptions } from "../../base/identity/auth-options.ts";
import {
  type Authenticator,
  type Credentials,
  type Identification,
  saysWho,
} from "../../base/identity/authenticator.ts";
import type { Lazy } from "../../base/process/lazy.ts";
import type { SecretOwner } from "../../parts/api-keys/api-key.ts";
import type { ApiKeys } from "../../parts/api-keys/api-keys.ts";

interface CallersOptions {
  readonly auth: AuthOptions;
  /** Verifies bearer tokens and the claims of a gateway. */
  readonly tokens: Authenticator;
  readonly apiKeys: Lazy<ApiKeys>;
}

/** Identifies callers by the schemes that a server declares besides tokens. */
export function createCallers({ auth, tokens, apiKeys }: CallersOptions): Authenticator {
  return {
    authenticate: async (credentials) => {
      const sent = apiKeyOf(credentials);
      if (sent === undefined) return tokens.authenticate(credentials);
      if (countOf(credentials, auth) > 1)
        return refuse("the request has two credentials; send one of them");
      return byApiKey(await verified(apiKeys, sent));
    },
    recognize: async (credentials) => {
      const sent = apiKeyOf(credentials);
      if (sent === undefined) return tokens.recognize(credentials);
      if (countOf(credentials, auth) > 1) return undefined;
      return byApiKey(apiKeys.value?.atHand(sent)).user;
    },
  };
}

/** Returns the API key of a request, valid or not. */
function apiKeyOf({ authorization, request }: Credentials): string | undefined {
  const bearer = /^Bearer +(kln_\S*)$/i.exec(authorization ?? "")?.[1];
  return bearer ?? request?.headers["x-api-key"];
}

function countOf(
  { authorization, gatewayClaims, request }: Credentials,
  { claims }: AuthOptions,
): number {
  const ofGateway = gatewayClaims !== undefined && saysWho(gatewayClaims.claims, claims);
  const given = [authorization, request?.headers["x-api-key"], ofGateway || undefined];
  return given.filter((credential) => credential !== undefined).length;
}

async function verified(apiKeys: Lazy<ApiKeys>, sent: string): Promise<SecretOwner | undefined> {
  try {
    return await (await apiKeys.open()).verify(sent);
  } catch (error) {
    if (isTypedError(error)) throw error;
    // The key may be valid, and a 401 would make clients discard it.
    throw new PipelineError("The caller's identity cannot be verified at the moment", 503, {
      cause: error,
      headers: { "retry-after": "2" },
    });
  }
}

/** Unknown, expired and revoked keys look the same. */
function byApiKey(owner: SecretOwner | undefined): Identification {
  if (owner === undefined) return refuse("the API key is not valid");
  const { id, tenantId, roles } = owner;
  return {
    user: Object.freeze({ id, tenantId, roles: Object.freeze([...roles]), kind: "apiKey" }),
  };
}

function refuse(problem: string): { readonly user: undefined; readonly problem: string } {
  return { user: undefined, problem };
}
