/** CRC-32 of DynamoDB's responses. Loading `node:zlib` would take 5 ms of a cold start. */
export function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  // Safe: the table has an entry for every byte.
  for (const byte of bytes) crc = (crc >>> 8) ^ (table[(crc ^ byte) & 0xff] as number);
  return (crc ^ 0xffffffff) >>> 0;
}

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});
