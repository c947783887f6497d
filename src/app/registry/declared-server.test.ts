import { expect, test } from "vitest";
import { isolationRole } from "./declared-server.ts";
import { optionProblems } from "./option-problems.ts";

const [role, other] = [
  "arn:aws:iam::123456789012:role/tenants",
  "arn:aws:iam::123456789012:role/others",
];
const named = { KEELSON_ISOLATION_ROLE: other };

test.each<
  [
    string,
    { readonly role?: string } | undefined,
    Record<string, string>,
    boolean,
    string | undefined,
  ]
>([
  ["not asked for, there is none, whatever the variable says", undefined, named, true, undefined],
  ["the variable names the role", {}, named, true, other],
  ["the option wins over the variable", { role }, named, true, role],
  ["the option is enough", { role }, {}, true, role],
  ["elsewhere the variable alone names a role", { role }, named, false, other],
  [
    "elsewhere there is none without it",
    { role },
    { KEELSON_ISOLATION_ROLE: "" },
    false,
    undefined,
  ],
])("%s", (_, isolation, variables, isDeployed, found) => {
  expect(isolationRole(isolation === undefined ? {} : { isolation }, variables, isDeployed)).toBe(
    found,
  );
});

test("isolation required in production without a role is an error that says what to set", () => {
  expect(() => isolationRole({ isolation: {} }, {}, true)).toThrow(
    "isolation: there is no role; set KEELSON_ISOLATION_ROLE to its ARN, or isolation.role of buildServer",
  );
});

test("the role is an ARN of any partition and path", () => {
  for (const good of [role, "arn:aws-cn:iam::123456789012:role/teams/a+b=c,d.e@f_g"]) {
    expect(optionProblems({ features: [], isolation: { role: good } })).toEqual([]);
  }
  for (const bad of ["tenants", `${role}\n`, role.replace("role", "user"), ""]) {
    expect(optionProblems({ features: [], isolation: { role: bad } })).toMatchObject([
      { key: "isolation.role" },
    ]);
  }
});
