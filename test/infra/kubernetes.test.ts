import { readFileSync } from "node:fs";
import { BlockList } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { defaultTimes } from "../../src/base/process/shutdown-limits.ts";
import { allOf, last, readStages, root } from "./dockerfile.ts";

const schema = JSON.parse(readFileSync(join(import.meta.dirname, "kubernetes-1.37.json"), "utf8"));
const documents = parseAllDocuments(readFileSync(join(root, "infra/kubernetes.yml"), "utf8"));
const manifests = documents.map((document) =>
  z.looseObject({ kind: z.string() }).parse(document.toJS()),
);
const deployments = manifests.filter(({ kind }) => kind === "Deployment") as Spec[];
const pod = manifestOf("Deployment").spec.template.spec;
const [container] = pod.containers;
const image = allOf(readStages().at(-1));

test("every manifest is valid for Kubernetes, without unknown fields", () => {
  expect(documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([]);
  expect(manifests.map(({ kind }) => kind)).toEqual([
    "ServiceAccount",
    "ConfigMap",
    ...["Deployment", "Deployment"],
    "Service",
    "PodDisruptionBudget",
    "NetworkPolicy",
  ]);
  expect(manifests.flatMap(problemsOf)).toEqual([]);
});

test.each([
  [
    "a field that is not known",
    (spec: Spec) => Object.assign(spec.containers[0], { readyProbe: {} }),
  ],
  ["a field that is missing", (spec: Spec) => delete spec.containers[0].name],
  [
    "a text in the place of a number",
    (spec: Spec) => Object.assign(spec, { terminationGracePeriodSeconds: "50" }),
  ],
])("the schema refuses %s", (_name, spoil) => {
  const deployment = structuredClone(manifestOf("Deployment"));
  spoil(deployment.spec.template.spec);

  expect(problemsOf(deployment)).not.toEqual([]);
});

test("a pod has more time to stop than a shutdown takes, and no hook that sleeps first", () => {
  expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(
    defaultTimes.totalMs / 1_000 + 5,
  );
  expect(container.lifecycle).toBeUndefined();
});

test("a pod can be stopped while its program loads, since its process is not process 1", () => {
  expect(pod.shareProcessNamespace).toBe(true);
});

test("the probes use the paths and the port of the image", () => {
  expect(container.ports).toEqual([{ name: "http", containerPort: Number(last(image, "EXPOSE")) }]);
  expect(container.startupProbe.httpGet).toEqual({ path: "/health/live", port: "http" });
  expect(container.livenessProbe.httpGet).toEqual({ path: "/health/live", port: "http" });
  expect(container.readinessProbe.httpGet).toEqual({ path: "/health/ready", port: "http" });
  expect(last(image, "HEALTHCHECK")).toContain(container.livenessProbe.httpGet.path);
  expect(manifestOf("Service").spec.ports[0].targetPort).toBe("http");
});

test("a readiness check that takes its full 2 s still answers in time", () => {
  expect(container.readinessProbe.timeoutSeconds).toBeGreaterThan(2);
});

test("the pod runs as the image's user, and can neither change its user nor write to its files", () => {
  expect(`${pod.securityContext.runAsUser}:${pod.securityContext.runAsGroup}`).toBe(
    last(image, "USER"),
  );
  expect(pod.securityContext).toMatchObject({
    runAsNonRoot: true,
    seccompProfile: { type: "RuntimeDefault" },
  });
  expect(container.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"] },
  });
});

test("the pod has no Kubernetes token, and a memory limit", () => {
  expect(pod.automountServiceAccountToken).toBe(false);
  expect(container.resources.limits).toEqual({ memory: expect.stringMatching(/^\d+Mi$/) });
});

test("traffic without a matching rule is refused, in and out", () => {
  const { policyTypes, ingress, egress } = manifestOf("NetworkPolicy").spec;

  expect(policyTypes).toEqual(["Ingress", "Egress"]);
  // A rule without peers or ports is one for everybody, or everything.
  for (const { from, ports } of ingress)
    expect([from.length > 0, ports]).toEqual([true, [{ port: container.ports[0].name }]]);
  for (const { to, ports } of egress) expect([to.length, ports.length]).not.toContain(0);
});

test.each([
  ["52.94.0.1", 443, true], // DynamoDB
  ["2600:1f18::1", 443, true],
  ["52.94.0.1", 80, false],
  ["169.254.169.254", 80, false], // the metadata of an instance, with its node's credentials
  ["169.254.169.254", 443, false],
  ["fd00:ec2::254", 80, false],
  ["169.254.170.23", 80, true], // EKS Pod Identity
  ["fd00:ec2::23", 80, true],
  ["10.0.0.1", 443, false], // the API of Kubernetes, a neighbour
  ["172.20.0.1", 443, false],
  ["192.168.1.1", 443, false],
  ["100.64.0.1", 443, false],
  ["127.0.0.1", 443, false],
  ["::1", 443, false],
  ["fe80::1", 443, false],
  ["fc00::1", 443, false],
  ["2002:a9fe:a9fe::1", 443, false], // 169.254.169.254 as 6to4
  ["64:ff9b::a9fe:a9fe", 443, false], // and through a NAT64
])("the pod may connect to %s, port %i: %s", (address, port, isAllowed) => {
  const family = address.includes(":") ? "ipv6" : "ipv4";
  const allowed = manifestOf("NetworkPolicy").spec.egress.some(
    (rule: Spec) =>
      rule.ports.some((one: Spec) => one.port === port) &&
      rule.to.some(
        ({ ipBlock }: Spec) =>
          ipBlock !== undefined &&
          blockOf([ipBlock.cidr]).check(address, family) &&
          !blockOf(ipBlock.except ?? []).check(address, family),
      ),
  );

  expect(allowed).toBe(isAllowed);
});

test("a rolling update removes no pod before its replacement is ready", () => {
  for (const { spec } of deployments)
    expect(spec.strategy.rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 });
});

test("requests, and messages with schedules, have deployments of their own, which differ in nothing else", () => {
  const works = (deployment: Spec) =>
    deployment.spec.template.spec.containers[0].env.find(({ name }: Spec) => name === "KEELSON_RUN")
      .value;
  const alike = (deployment: Spec, component: string) =>
    JSON.stringify(deployment)
      .replace(`"value":"${works(deployment)}"`, '"value":"the work"')
      .replaceAll(`-${component}"`, '-part"')
      .replaceAll(`"${component}"`, '"part"');
  expect(deployments.map(({ metadata }) => metadata.name)).toEqual([
    ...["keelson-files-web", "keelson-files-worker"],
  ]);
  expect(deployments.map(works)).toEqual(["http", "workers,schedules"]);
  const [web, worker] = deployments;
  expect(alike(worker, "worker")).toBe(alike(web, "web"));
});

test("all manifests select the same pods, and all their references exist except the secret", () => {
  const name = "keelson-files";
  const labels = { "app.kubernetes.io/name": name };
  const labelsOf = (component: string) => ({
    ...labels,
    "app.kubernetes.io/component": component,
  });

  for (const [at, component] of ["web", "worker"].entries()) {
    const { selector, template } = deployments[at].spec;
    const matchLabels = labelsOf(component);
    expect(template.metadata.labels).toEqual(matchLabels);
    expect(selector).toEqual({ matchLabels });
    expect(
      template.spec.topologySpreadConstraints.map(({ labelSelector }: Spec) => labelSelector),
    ).toEqual([{ matchLabels }, { matchLabels }]);
  }
  expect(manifestOf("Service").spec.selector).toEqual(labelsOf("web"));
  expect(manifestOf("PodDisruptionBudget").spec.selector).toEqual({ matchLabels: labels });
  expect(manifestOf("NetworkPolicy").spec.podSelector).toEqual({ matchLabels: labels });
  expect(manifestOf("ServiceAccount").metadata.name).toBe(pod.serviceAccountName);
  expect(manifestOf("ConfigMap").metadata.name).toBe(container.envFrom[0].configMapRef.name);
  expect(container.env).toEqual([
    { name: "KEELSON_RUN", value: "http" },
    {
      name: "KEELSON_AUTH_SECRET",
      valueFrom: { secretKeyRef: { name, key: "KEELSON_AUTH_SECRET" } },
    },
  ]);
  expect(Object.keys(manifestOf("ConfigMap").data)).not.toContain("KEELSON_AUTH_SECRET");
});

// biome-ignore lint/suspicious/noExplicitAny: the schema above says what they are
type Spec = any;

function manifestOf(kind: string): Spec {
  return manifests.find((manifest) => manifest.kind === kind);
}

function blockOf(ranges: readonly string[]): BlockList {
  const block = new BlockList();
  for (const range of ranges) {
    const [address = "", bits] = range.split("/");
    block.addSubnet(address, Number(bits), address.includes(":") ? "ipv6" : "ipv4");
  }
  return block;
}

/** What Kubernetes would say against a manifest. */
function problemsOf(manifest: { readonly kind: string }): string[] {
  const definition = z.fromJSONSchema({ ...schema.kinds[manifest.kind], $defs: schema.$defs });
  const { error } = definition.safeParse(manifest);
  return (
    error?.issues.map(({ path, message }) => `${manifest.kind}.${path.join(".")}: ${message}`) ?? []
  );
}
