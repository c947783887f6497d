export function isReceipt(text: string): boolean {
  return (
    /^[^:]+:[^:]+$/.test(Buffer.from(text, "base64url").toString()) &&
    receiptOf(...partsOf(text)) === text
  );
}

export function receiptOf(messageId: string, secret: string): string {
  return Buffer.from(`${messageId}:${secret}`).toString("base64url");
}

export function messageIdOf(receipt: string): string {
  return partsOf(receipt)[0];
}

function partsOf(receipt: string): [messageId: string, secret: string] {
  const [messageId = "", secret = ""] = Buffer.from(receipt, "base64url").toString().split(":");
  return [messageId, secret];
}
