const {
  NODE_ENV,
  AWS_ACCESS_KEY_ID,
  AWS_REGION = "us-east-1",
  FILES_BUCKET = "keelson-files",
} = process.env;
const needsPlaceholder =
  (NODE_ENV === "development" || NODE_ENV === "test") && AWS_ACCESS_KEY_ID === undefined;

/**
 * The storage location of a file's bytes. This is the level "hardcoded" of the configuration: the
 * isolation of tenants is not a setting.
 */
export function storageKey(tenantId: string, fileId: string): string {
  return `tenants/${encodeURIComponent(tenantId)}/files/${encodeURIComponent(fileId)}`;
}

/** Signs a URL under which S3 hands out a file for `expiresSeconds` seconds; S3 answers 404 if it does not exist. */
export async function presignDownload(
  tenantId: string,
  fileId: string,
  expiresSeconds: number,
): Promise<string> {
  // Loaded on demand: the other routes start without it.
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
