export type { CacheOptions } from "./config/cache/cache-options.ts";
export { validateAppOverrides } from "./config/declare/app-overrides.ts";
export {
  type Bounds,
  type ComputedContext,
  type ConfigKeyDefinition,
  type ConfigKeyHandle,
  type ConfigScope,
  type ConfigType,
  createSystemConfig,
  createTenantConfig,
  createUserConfig,
  type KeyDeclaration,
} from "./config/declare/declaration.ts";
export {
  validateConfigKeyAllowPerRequest,
  validateConfigKeyBounds,
  validateConfigKeyComputed,
} from "./config/declare/validators.ts";
export type { WriteAction } from "./config/operate/config-store.ts";
export type { ConfigLevel, DeclarationView } from "./config/operate/explain-levels.ts";
export {
  type ConfigHistoryItem,
  type ConfigHistoryOptions,
  type ConfigHistoryPage,
  configHistory,
} from "./config/operate/history.ts";
export { type ConfigExplanation, type ConfigItem, explainConfig } from "./config/operate/look-up.ts";
export type { OperatorContext } from "./config/operate/operator-session.ts";
export { type RotationOptions, type RotationProgress, rotateConfigKeys } from "./config/operate/rotation.ts";
export {
  type ConfigWriteResult,
  type ResetConfigOptions,
  resetConfig,
  type SetConfigOptions,
  setConfig,
  type UndoConfigOptions,
  undoConfig,
} from "./config/operate/set-config.ts";
export type { ConfigTarget } from "./config/operate/target.ts";
export type { ConfigSource } from "./config/read/cascade.ts";
export { type ClampData, type ParameterOptions, resolveConfigOrParam } from "./config/read/request-parameter.ts";
export { type ConfigResolver, createConfigResolver } from "./config/read/resolver.ts";
export { type AmbientContext, currentContext } from "./context/ambient.ts";
// A star, because only what a star exports can be augmented by `declare module "keelson"`.
export * from "./context/names.ts";
export type { CommitItem, Database, DeliveryAccessor, PipelineContext, RequestView } from "./context/pipeline-context.ts";
export type { Trace } from "./context/trace.ts";
export type { Closer, ReadyCheck } from "./declare/declared-server.ts";
export type { DeliveryOptions, WebhookOptions } from "./declare/delivery-options.ts";
export { type ConfigHandles, defineFeature, type Feature, type FeatureBuilder } from "./declare/feature.ts";
export type { Answer, Awaitable, QueryOptions, WriteOptions } from "./declare/handler.ts";
export type { ChannelOptions, EventOf, EventSchema, JobOptions } from "./declare/message-handlers.ts";
export type { ServerOptions } from "./declare/options.ts";
export { createRegistry, type Registry } from "./declare/registry.ts";
export type { TableHandle } from "./declare/table.ts";
export { BootError, type BootProblem } from "./errors/boot.ts";
export { type ErrorCode, errorCodes } from "./errors/codes.ts";
export { CommitConditionError } from "./errors/commit-condition-error.ts";
export {
  AccessDeniedError,
  ConflictError,
  type ErrorDetails,
  type FieldError,
  FrameworkError,
  isTypedError,
  NotFoundError,
  PipelineError,
  ValidationError,
} from "./errors/errors.ts";
export { PermanentError } from "./errors/permanent-error.ts";
export type { Cause } from "./events/cause.ts";
export type { SharedEvent } from "./events/envelope.ts";
export type { MessageProof } from "./events/proof.ts";
export type { CorsOptions } from "./http/cors.ts";
export type { Limits } from "./http/limits.ts";
export type { BodyKind } from "./http/message.ts";
export { type Reply, type ReplyCookie, type ReplyOptions, reply } from "./http/reply.ts";
export { type AccessRule, access } from "./identity/access.ts";
export type { AuthOptions, ClaimNames } from "./identity/auth-options.ts";
export type { User } from "./identity/user.ts";
export type { Logger, LogLevel } from "./log/logger.ts";
export type { PowertoolsLogger } from "./log/powertools-logger.ts";
export type { OnceBy } from "./once/once-by.ts";
export type { Environment } from "./process/environment.ts";
export { buildServer, type Server } from "./server/server.ts";
