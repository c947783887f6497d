// Installs LocalStack in host mode, without a container engine: the Python part by the lock next to
// this file, DynamoDB Local from Maven Central, and the files that connect the two.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

const lock = join(import.meta.dirname, "requirements.lock");
const dependencies = [
  { groupId: "com.amazonaws", artifactId: "DynamoDBLocal", version: "2.6.1" },
  { groupId: "net.bytebuddy", artifactId: "byte-buddy-agent", version: "1.17.5" },
];
const mainClass = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner";

/** The places of an installation's parts. */
export function placesOf(directory) {
  const root = join(directory, "root");
  const store = join(root, "var", "lib", "localstack", "lib");
  return {
    directory,
    root,
    venv: join(directory, "venv"),
    python: join(directory, "venv", "bin", "python"),
    dynamoDb: join(store, "dynamodb-local", "2"),
    jars: join(store, "dynamodb-local", "2", "DynamoDBLocal_lib"),
    java: join(store, "java", "21"),
    stamp: join(directory, "installed"),
  };
}

/**
 * Installs missing parts, and prints one line per step.
 *
 * @throws Error naming everything that the machine lacks, or the step that failed or was aborted.
 */
export async function install(directory, say, signal) {
  const places = placesOf(directory);
  const wanted = createHash("sha256")
    .update(readFileSync(lock))
    .update(JSON.stringify(dependencies))
    .digest("hex");
  if (read(places.stamp) === wanted) {
    say(`installed already in ${directory}`);
    return places;
  }
  const { python, javaHome } = prerequisites();
  // An incomplete installation may be from another version of this script.
  for (const half of [places.stamp, places.venv, places.root])
    rmSync(half, { recursive: true, force: true });
  mkdirSync(places.jars, { recursive: true, mode: 0o700 }); // this may create .keelson, which also holds secrets

  const run = (command, args, cwd) => runCommand(command, args, { cwd, signal });
  await step(say, "1/4 a Python environment", async () => {
    await run(python, ["-m", "venv", places.venv]);
    await run(places.python, ["-m", "pip", "install", "--quiet", "uv"]);
  });
  await step(say, "2/4 LocalStack, by its lock", () =>
    run(join(places.venv, "bin", "uv"), [
      "pip",
      "sync",
      "--quiet",
      "--python",
      places.python,
      lock,
    ]),
  );
  await step(say, "3/4 DynamoDB Local, from Maven Central", async () => {
    const pom = join(directory, "pom.xml");
    writeFileSync(pom, pomText());
    await run("mvn", [
      "-q",
      "-B",
      "-f",
      pom,
      "dependency:copy-dependencies",
      `-DoutputDirectory=${places.jars}`,
    ]);
  });
  await step(say, "4/4 the link between the two", async () => {
    await writeLauncher(places, run);
    mkdirSync(join(places.java, ".."), { recursive: true });
    symlinkSync(javaHome, places.java);
  });
  writeFileSync(places.stamp, wanted);
  return places;
}

/** Finds python3, java and mvn, and names all missing ones in one error. */
function prerequisites() {
  const missing = [];
  const python = ["python3", "python3.13", "python3.12", "python3.11"].find((command) => {
    const version = output(command, [
      "-c",
      "import sys, venv, ensurepip; print(sys.version_info >= (3, 11))",
    ]);
    return version?.trim() === "True";
  });
  if (python === undefined)
    missing.push("python3 of at least 3.11, with venv (Debian: apt install python3 python3-venv)");
  // Java prints its settings to stderr.
  const javaHome = /^\s*java\.home = (.+)$/m.exec(
    output("java", ["-XshowSettings:properties", "-version"]) ?? "",
  )?.[1];
  if (javaHome === undefined)
    missing.push("java of at least 17 (Debian: apt install openjdk-17-jre-headless)");
  if (output("mvn", ["--version"]) === undefined) missing.push("mvn (Debian: apt install maven)");
  if (missing.length > 0) {
    throw new Error(
      `missing on this machine:\n${missing.map((what) => `  - ${what}`).join("\n")}\n` +
        "install them, or start a container engine, or set LOCALSTACK_ENDPOINT to a LocalStack that runs",
    );
  }
  return { python, javaHome };
}

/** LocalStack starts DynamoDBLocal.jar with an agent. In Maven Central, both have other names. */
async function writeLauncher({ dynamoDb, jars, python, directory }, run) {
  const names = readdirSync(jars).filter((name) => name.endsWith(".jar"));
  const agent = names.find((name) => name.startsWith("byte-buddy-agent"));
  if (agent === undefined) throw new Error(`no byte-buddy-agent in ${jars}`);
  for (const place of [dynamoDb, jars])
    copyFileSync(join(jars, agent), join(place, "ddb-local-loader-0.1.jar"));
  const classPath = names.map((name) => `DynamoDBLocal_lib/${name}`).join(" ");
  const manifest = ["Manifest-Version: 1.0", `Main-Class: ${mainClass}`, `Class-Path: ${classPath}`]
    .map(fold)
    .join("\r\n");
  const folder = join(directory, "launcher");
  mkdirSync(join(folder, "META-INF"), { recursive: true });
  writeFileSync(join(folder, "META-INF", "MANIFEST.MF"), `${manifest}\r\n`);
  await run(
    python,
    ["-m", "zipfile", "-c", join(dynamoDb, "DynamoDBLocal.jar"), "META-INF/"],
    folder,
  );
}

/** A line of a manifest has at most 72 bytes; a continued line starts with a blank. */
function fold(line) {
  const parts = [line.slice(0, 72)];
  for (let at = 72; at < line.length; at += 71) parts.push(` ${line.slice(at, at + 71)}`);
  return parts.join("\r\n");
}

function pomText() {
  const wanted = dependencies.map(
    ({ groupId, artifactId, version }) =>
      `<dependency><groupId>${groupId}</groupId><artifactId>${artifactId}</artifactId><version>${version}</version></dependency>`,
  );
  return `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>keelson</groupId><artifactId>localstack</artifactId><version>1</version>
<dependencies>${wanted.join("")}</dependencies></project>
`;
}

async function step(say, name, work) {
  say(name);
  const began = performance.now();
  try {
    await work();
  } catch (error) {
    throw new Error(`step ${name} failed: ${error.message}`);
  }
  say(`${name}: done in ${((performance.now() - began) / 1000).toFixed(1)} s`);
}

function runCommand(command, args, options) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => {
        said = (said + text).slice(-4000);
      });
    }
    child.once("error", reject);
    child.once("close", (code, signal) =>
      code === 0
        ? resolve()
        : reject(new Error(`${command} ended with ${signal ?? code}\n${said.trim()}`)),
    );
  });
}

function output(command, args) {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8" });
  return status === 0 ? `${stdout}${stderr}` : undefined;
}

function read(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
