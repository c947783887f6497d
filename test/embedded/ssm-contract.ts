import { randomBytes } from "node:crypto";
import {
  DeleteParameterCommand,
  GetParameterCommand,
  GetParametersByPathCommand,
  GetParametersCommand,
  type Parameter,
  PutParameterCommand,
  type PutParameterCommandInput,
  type SSMClient,
} from "@aws-sdk/client-ssm";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

/** One connection to the Parameter Store under test. */
export interface SsmConnection {
  readonly client: SSMClient;
  close(): Promise<void>;
}

/** Where implementations are known to differ. */
export interface SsmCapabilities {
  /** A SecureString is unreadable without `WithDecryption`. */
  readonly seals: boolean;
  /** A parameter cannot become one of another type. */
  readonly keepsTypes: boolean;
  /** Names that begin with `aws` or `ssm`, values above 4096 characters, paths without a slash and pages of more than ten are refused. */
  readonly checksInput: boolean;
}

/** What Parameter Store does and no emulator shows, so that no test against one can cover it. */
export const notShownByEmulators: readonly string[] = Object.freeze([
  "throttling: ThrottlingException comes from 40 calls a second on (tests answer it themselves)",
  "permissions: AccessDeniedException for a path, or for the KMS key of a SecureString, never comes",
  "encryption by KMS: the embedded stack seals with a key of its own, and LocalStack's sealed value holds the clear text",
  "eventual consistency: a page is never behind a change",
]);

/** Describes what keelson relies on Parameter Store for, as tests with the real AWS SDK. */
export function describeSsmContract(
  name: string,
  connect: () => Promise<SsmConnection>,
  capabilities: SsmCapabilities,
): void {
  describe(`${name} as SSM`, () => {
    let connection: SsmConnection;
    const base = `/contract-${fresh()}`;
    const client = () => connection.client;
    const place = () => `${base}/${fresh()}`;
    const put = (input: Partial<PutParameterCommandInput> & { readonly Name: string }) =>
      client().send(new PutParameterCommand({ Value: "v", Type: "String", ...input }));
    const get = async (Name: string, WithDecryption = false) =>
      (await client().send(new GetParameterCommand({ Name, WithDecryption }))).Parameter;
    const refused = async (call: Promise<unknown>) => {
      const outcome = await call.then(
        () => "taken",
        (error: Error) => error.name,
      );
      return outcome;
    };

    beforeAll(async () => {
      connection = await connect();
    });
    afterAll(() => connection.close());

    describe("parameters", () => {
      test("a parameter comes back with its value, type and version", async () => {
        const Name = place();
        const Value = 'tätä "\u{1F600}"\n{{}}';
        expect((await put({ Name, Value, Description: "about it" })).Version).toBe(1);
        expect(await get(Name)).toMatchObject({
          Name,
          Value,
          Type: "String",
          Version: 1,
          DataType: "text",
        });
        expect((await get(Name))?.LastModifiedDate).toBeInstanceOf(Date);
        expect((await get(Name))?.ARN).toContain(`:parameter${Name}`);
      });

      test("a parameter that is there is changed only where asked for, and its version grows", async () => {
        const Name = place();
        await put({ Name, Value: "one" });
        expect(await refused(put({ Name, Value: "two" }))).toBe("ParameterAlreadyExists");
        expect(await get(Name)).toMatchObject({ Value: "one", Version: 1 });
        expect((await put({ Name, Value: "three", Overwrite: true })).Version).toBe(2);
        expect(await get(Name)).toMatchObject({ Value: "three", Version: 2 });
      });

      test("a parameter that is not there cannot be read or deleted", async () => {
        expect(await refused(get(place()))).toBe("ParameterNotFound");
        expect(await refused(client().send(new DeleteParameterCommand({ Name: place() })))).toBe(
          "ParameterNotFound",
        );
      });

      test("a parameter that was deleted is gone, and made anew has version 1", async () => {
        const Name = place();
        await put({ Name });
        await put({ Name, Overwrite: true });
        await client().send(new DeleteParameterCommand({ Name }));
        expect(await refused(get(Name))).toBe("ParameterNotFound");
        expect((await put({ Name })).Version).toBe(1);
      });

      test("several are read at once, and those that are not there are named", async () => {
        const [one, two, none] = [place(), place(), place()];
        await put({ Name: one, Value: "1" });
        await put({ Name: two, Value: "2" });
        const read = await client().send(new GetParametersCommand({ Names: [two, none, one] }));
        expect(read.Parameters?.map(({ Value }) => Value).sort()).toEqual(["1", "2"]);
        expect(read.InvalidParameters).toEqual([none]);
        const tooMany = Array.from({ length: 11 }, place);
        expect(await refused(client().send(new GetParametersCommand({ Names: tooMany })))).toBe(
          "ValidationException",
        );
      });

      test("a new parameter without a type is refused", async () => {
        const untyped = new PutParameterCommand({ Name: place(), Value: "v" });
        expect(await refused(client().send(untyped))).toBe("ValidationException");
      });

      if (capabilities.checksInput) {
        test.each(["/aws/x", "ssm-x", "/a b", "a/b", "/a//b", "/a/"])(
          "the name %s is refused",
          async (Name) => {
            expect(await refused(put({ Name }))).toBe("ValidationException");
          },
        );

        test("a value above 4096 characters, a name that is too long, and one with too many levels are refused", async () => {
          expect(await refused(put({ Name: place(), Value: "x".repeat(4097) }))).toBe(
            "ValidationException",
          );
          expect(await refused(put({ Name: `/${"x".repeat(1011)}` }))).toBe("ValidationException");
          expect(await refused(put({ Name: "/a".repeat(16) }))).toBe(
            "HierarchyLevelLimitExceededException",
          );
        });
      }

      if (capabilities.keepsTypes) {
        test("a parameter cannot become one of another type", async () => {
          const Name = place();
          await put({ Name });
          expect(await refused(put({ Name, Type: "SecureString", Overwrite: true }))).toBe(
            "HierarchyTypeMismatchException",
          );
        });
      }
    });

    describe("SecureString", () => {
      test("it comes back in clear only with WithDecryption", async () => {
        const Name = place();
        const Value = `secret ${fresh()}`;
        await put({ Name, Value, Type: "SecureString" });
        expect(await get(Name, true)).toMatchObject({ Value, Type: "SecureString" });
        const sealed = (await get(Name))?.Value;
        expect(sealed).not.toBe(Value);
        if (capabilities.seals) expect(sealed).not.toContain("secret");
      });

      test("a new version opens too, by name and by path", async () => {
        const path = place();
        const Name = `${path}/key`;
        await put({ Name, Value: "one", Type: "SecureString" });
        await put({ Name, Value: "two", Type: "SecureString", Overwrite: true });
        const read = await client().send(
          new GetParametersCommand({ Names: [Name], WithDecryption: true }),
        );
        expect(read.Parameters?.map(({ Value }) => Value)).toEqual(["two"]);
        const byPath = await client().send(
          new GetParametersByPathCommand({ Path: path, WithDecryption: true }),
        );
        expect(byPath.Parameters?.map(({ Value }) => Value)).toEqual(["two"]);
      });
    });

    describe("paths", () => {
      const below = async (Path: string, Recursive: boolean, MaxResults?: number) => {
        const found: Parameter[] = [];
        const sizes: number[] = [];
        let NextToken: string | undefined;
        do {
          const page = await client().send(
            new GetParametersByPathCommand({
              Path,
              Recursive,
              ...(MaxResults === undefined ? {} : { MaxResults }),
              ...(NextToken === undefined ? {} : { NextToken }),
            }),
          );
          found.push(...(page.Parameters ?? []));
          sizes.push(page.Parameters?.length ?? 0);
          NextToken = page.NextToken;
        } while (NextToken !== undefined);
        return { names: found.map(({ Name }) => Name).sort(), sizes };
      };

      test("a path gives what is directly below it, or everything", async () => {
        const path = place();
        for (const name of ["/a", "/b/c", "/b/d/e"]) await put({ Name: `${path}${name}` });
        await put({ Name: `${path}-other/x` });
        expect((await below(path, false)).names).toEqual([`${path}/a`]);
        expect((await below(path, true)).names).toEqual([
          `${path}/a`,
          `${path}/b/c`,
          `${path}/b/d/e`,
        ]);
        expect((await below(`${path}/b`, false)).names).toEqual([`${path}/b/c`]);
        expect((await below(`${path}/nothing`, true)).names).toEqual([]);
      });

      test("pages have at most ten parameters, and together all of them once", async () => {
        const path = place();
        const names = Array.from(
          { length: 23 },
          (_, index) => `${path}/p${String(index).padStart(2, "0")}`,
        );
        for (const Name of names) await put({ Name });
        const all = await below(path, true);
        expect(all.names).toEqual(names);
        expect(Math.max(...all.sizes)).toBeLessThanOrEqual(10);
        expect((await below(path, true, 4)).names).toEqual(names);
      });

      if (capabilities.checksInput) {
        test("a page of more than ten, and a path that does not begin with a slash, are refused", async () => {
          const tooLarge = new GetParametersByPathCommand({ Path: base, MaxResults: 11 });
          expect(await refused(client().send(tooLarge))).toBe("ValidationException");
          expect(
            await refused(client().send(new GetParametersByPathCommand({ Path: "a/b" }))),
          ).toBe("ValidationException");
        });
      }
    });
  });
}

function fresh(): string {
  return randomBytes(6).toString("hex");
}
