import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, PutCommand } from "@aws-sdk/lib-dynamodb";
import { buildServer, defineFeature } from "../src/index.ts";
import { startTestApp, type TestApp } from "../src/tools/testing/index.ts";
import { files } from "./feature.ts";

const tables = defineFeature("bench", (r) => {
  r.table("parameters", { partitionKey: "id", tenant: false });
  r.table("claims", { partitionKey: "id", tenant: false });
});

/** An embedded stack with one value, as we and as the peers keep it. */
export async function startStack(): Promise<TestApp> {
  const app = await startTestApp(buildServer({ features: [files, tables] }));
  await app.rows.put({
    scope: "tenant",
    tenantId: "acme",
    key: files.config.maxUploadSizeMb.id,
    value: 77,
  });
  await app.rows.put({ scope: "system", key: files.config.maxUploadSizeMb.id, value: 77 });
  const {
    AWS_ENDPOINT_URL = "",
    AWS_REGION = "",
    AWS_ACCESS_KEY_ID = "",
    AWS_SECRET_ACCESS_KEY = "",
  } = app.env;
  const client = new DynamoDBClient({
    endpoint: AWS_ENDPOINT_URL,
    region: AWS_REGION,
    credentials: { accessKeyId: AWS_ACCESS_KEY_ID, secretAccessKey: AWS_SECRET_ACCESS_KEY },
  });
  const Item = { id: "max-upload-size-mb", value: 77 };
  await DynamoDBDocumentClient.from(client).send(
    new PutCommand({ TableName: "keelson-parameters", Item }),
  );
  client.destroy();
  return app;
}
