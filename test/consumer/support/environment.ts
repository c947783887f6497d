import { delimiter, dirname } from "node:path";

/** npm and npx are batch files on Windows. */
export const shell = process.platform === "win32";

/**
 * The environment of a process in a project: this Node, but no other program of the repository. It lacks the variables that npm
 * has set for the tests, because npm would otherwise take the repository for the project. npm asks the registry for the newest
 * versions, because a list in its cache may be older than a package that needs a newer version.
 */
export function consumerEnvironment(
  more: Readonly<Record<string, string | undefined>> = {},
): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) =>
      !/^(npm_|vitest|vite_|node_env$|node_options$|node_path$|init_cwd$|keelson_|path$|test$|dev$|prod$|mode$)/i.test(
        name,
      ),
  );
  const path = (process.env["PATH"] ?? "")
    .split(delimiter)
    .filter((folder) => !folder.includes("node_modules"));
  return {
    ...Object.fromEntries(kept),
    PATH: [dirname(process.execPath), ...path].join(delimiter),
    npm_config_prefer_online: "true",
    npm_config_audit: "false",
    npm_config_fund: "false",
    npm_config_update_notifier: "false",
    ...more,
  };
}
