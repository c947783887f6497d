export function isReceipt(text: string): boolean {
  const [messageId, secret, ...more] = partsOf(text);
  return !!messageId && !!secret && more.length === 0 && receiptOf(messageId, secret) === text;
}

export function receiptOf(messageId: string, secret: string): string {
  return Buffer.from(`${messageId}:${secret}`).toString("base64url");
}

export function messageIdOf(receipt: string): string {
  return String(partsOf(receipt)[0]);
}

function partsOf(receipt: string): readonly string[] {
  return Buffer.from(receipt, "base64url").toString().split(":");
}
