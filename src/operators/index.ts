export { type UndoConfigOptions, undoConfig } from "../config/operate/change.ts";
export {
  type ConfigHistoryItem,
  type ConfigHistoryOptions,
  type ConfigHistoryPage,
  configHistory,
} from "../config/operate/config-history.ts";
export type { WriteAction } from "../config/operate/config-store.ts";
export {
  type ConfigExplanation,
  type ConfigItem,
  explainConfig,
} from "../config/operate/explain-config.ts";
export type { ConfigLevel, DeclarationView } from "../config/operate/explain-levels.ts";
export {
  type RotationOptions,
  type RotationProgress,
  rotateConfigKeys,
} from "../config/operate/rotation.ts";
