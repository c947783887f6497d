export {
  type ConfigWriteResult,
  type ResetConfigOptions,
  resetConfig,
  type SetConfigOptions,
  setConfig,
  type UndoConfigOptions,
  undoConfig,
} from "../../parts/config/operate/change.ts";
export {
  type ConfigHistoryItem,
  type ConfigHistoryOptions,
  type ConfigHistoryPage,
  configHistory,
} from "../../parts/config/operate/config-history.ts";
export type {
  ConfigExplanation,
  DeclarationView,
} from "../../parts/config/operate/explain-config.ts";
export type { ConfigItem, ConfigLevel } from "../../parts/config/operate/explain-levels.ts";
export type { LimitUse } from "../../parts/config/operate/limit-use.ts";
export type { OperatorContext, WriteAction } from "../../parts/config/operate/operator-session.ts";
export {
  type RotationOptions,
  type RotationProgress,
  rotateConfigKeys,
} from "../../parts/config/operate/rotation.ts";
export type { ConfigTarget } from "../../parts/config/operate/target.ts";
export { explainConfig } from "./explain.ts";
