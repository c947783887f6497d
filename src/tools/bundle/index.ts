export { type EsbuildPlugin, esbuildPlugin } from "./esbuild.ts";
export { type RolldownPlugin, rolldownPlugin } from "./rolldown.ts";
