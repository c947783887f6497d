import { type SigningCredentials, signedHeaders } from "./signature.ts";

interface SignedRequest {
  readonly path: string;
  readonly body: string | Uint8Array;
  headers: Readonly<Record<string, string>>;
}

const ofSignature = ["authorization", "x-amz-date", "x-amz-security-token"];

/** Replaces the SDK's signature of a request. @throws Error if its form is unknown. */
export function signAs(request: unknown, credentials: SigningCredentials): void {
  const signed = request as SignedRequest; // safe: missing members are detected below
  const { headers, body, path } = signed;
  const [, region, service, list] = scheme.exec(headers["authorization"] ?? "") ?? [];
  const sentMs = Date.parse(
    (headers["x-amz-date"] ?? "").replace(/^(\d{4})(\d\d)(\d\dT\d\d)(\d\d)/, "$1-$2-$3:$4:"),
  );
  if (
    region === undefined ||
    service === undefined ||
    list === undefined ||
    Number.isNaN(sentMs) ||
    path !== "/"
  ) {
    throw new Error(
      "isolation: the SDK has signed a request in a way that keelson does not know; it was not sent",
    );
  }
  const names = list.split(";").filter((name) => !ofSignature.includes(name));
  const own = Object.fromEntries(names.map((name) => [name, headers[name] ?? ""]));
  signed.headers = {
    ...headers,
    ...signedHeaders({ headers: own, body, region, service }, credentials, sentMs),
  };
}

const scheme =
  /^AWS4-HMAC-SHA256 Credential=[^/]+\/\d{8}\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), /;
