const {
  NODE_ENV,
  AWS_ACCESS_KEY_ID,
  AWS_REGION = "us-east-1",
  FILES_BUCKET = "keelson-files",
} = process.env;
const needsPlaceholder =
  (NODE_ENV === "development" || NODE_ENV === "test") && AWS_ACCESS_KEY_ID === undefined;

/**
 * Where the bytes of a file are kept. The level "hardcoded" of the configuration: what keeps
 * tenants apart is no setting.
 */
export function storageKey(tenantId: string, fileId: string): string {
  return `tenants/${encodeURIComponent(tenantId)}/files/${encodeURIComponent(fileId)}`;
}

/** Signs a URL under which S3 hands out a file for `expiresSeconds` seconds; S3 answers 404 where there is none. */
export async function presignDownload(
  tenantId: string,
  fileId: string,
  expiresSeconds: number,
): Promise<string> {
  // Loaded when it is asked for: the other routes start without it.
  const [{ GetObjectCommand, S3Client }, { getSignedUrl }] = await Promise.all([
    import("@aws-sdk/client-s3"),
    import("@aws-sdk/s3-request-presigner"),
  ]);
  const s3 = new S3Client({
    region: AWS_REGION,
    ...(needsPlaceholder
      ? { credentials: { accessKeyId: "development", secretAccessKey: "development" } }
      : {}),
  });
  const command = new GetObjectCommand({ Bucket: FILES_BUCKET, Key: storageKey(tenantId, fileId) });
  return getSignedUrl(s3, command, { expiresIn: expiresSeconds });
}
