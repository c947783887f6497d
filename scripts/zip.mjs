// Makes a zip archive. The same files result in the same bytes, so that its hash changes only with the code.
import { readFileSync } from "node:fs";
import { crc32, deflateRawSync } from "node:zlib";

/** 1980-01-01, the first day there is. */
const date = (1 << 5) | 1;
const unixFile = 0o100644 << 16;

/** The archive of files, given by their names in it. */
export function zip(files) {
  const [local, central] = [[], []];
  let offset = 0;
  for (const [name, path] of Object.entries(files)) {
    const content = readFileSync(path);
    const [packed, encoded] = [deflateRawSync(content, { level: 9 }), Buffer.from(name)];
    // Version, flags (names are UTF-8), method, time, date, checksum, sizes, length of the name, no extra field.
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(0x0800, 2);
    common.writeUInt16LE(8, 4);
    common.writeUInt16LE(date, 8);
    common.writeUInt32LE(crc32(content), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(content.length, 18);
    common.writeUInt16LE(encoded.length, 22);
    local.push(Buffer.from("PK\x03\x04"), common, encoded, packed);
    const rest = Buffer.alloc(14); // no comment, the first disk, a binary file
    rest.writeUInt32LE(unixFile >>> 0, 6);
    rest.writeUInt32LE(offset, 10);
    central.push(Buffer.from("PK\x01\x02"), Buffer.from([20, 3]), common, rest, encoded);
    offset += 30 + encoded.length + packed.length;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(18);
  const count = Object.keys(files).length;
  end.writeUInt16LE(count, 4);
  end.writeUInt16LE(count, 6);
  end.writeUInt32LE(directory.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...local, directory, Buffer.from("PK\x05\x06"), end]);
}
