export type { CacheOptions } from "./config/cache/cache-options.ts";
export { validateAppOverrides } from "./config/declare/app-overrides.ts";
export {
  createSystemConfig,
  createTenantConfig,
  createUserConfig,
} from "./config/declare/declaration.ts";
export type {
  Bounds,
  ComputedContext,
  ConfigKeyDefinition,
  ConfigKeyHandle,
  ConfigScope,
  ConfigType,
  KeyDeclaration,
} from "./config/declare/key.ts";
export {
  validateConfigKeyAllowPerRequest,
  validateConfigKeyBounds,
  validateConfigKeyComputed,
} from "./config/declare/validators.ts";
export type {
  ConfigWriteResult,
  ResetConfigOptions,
  SetConfigOptions,
} from "./config/operate/change.ts";
export type { OperatorContext } from "./config/operate/operator-session.ts";
export { resetConfig, setConfig } from "./config/operate/set-config.ts";
export type { ConfigTarget } from "./config/operate/target.ts";
export type { ConfigSource } from "./config/read/cascade.ts";
export {
  type ClampData,
  type ParameterOptions,
  resolveConfigOrParam,
} from "./config/read/request-parameter.ts";
export { type ConfigResolver, createConfigResolver } from "./config/read/resolver.ts";
export { type AmbientContext, currentContext } from "./context/ambient.ts";
export type { CommitItem, Database } from "./context/database.ts";
// A star, because only what a star exports can be augmented by `declare module "keelson"`.
export * from "./context/names.ts";
export type { RequestView } from "./context/request-view.ts";
export type { IncomingTrace, Trace, TraceHeaders } from "./context/trace.ts";
export type { Closer, ReadyCheck } from "./declare/declared-server.ts";
export type { DeliveryOptions, WebhookOptions } from "./declare/delivery-options.ts";
export {
  type ConfigHandles,
  defineFeature,
  type Feature,
  type FeatureBuilder,
} from "./declare/feature.ts";
export type { Answer, Awaitable, QueryOptions, WriteOptions } from "./declare/handler.ts";
export type { AfterHookContext, HookContext, HookOptions } from "./declare/hooks.ts";
export type {
  ChannelOptions,
  EventOf,
  EventOptions,
  EventSchema,
  JobOptions,
} from "./declare/message-handlers.ts";
export type { MetricOptions } from "./declare/metric.ts";
export type { MetricsOptions } from "./declare/metrics-options.ts";
export type { ServerOptions } from "./declare/options.ts";
export type {
  DeliveryAccessor,
  EnqueueOptions,
  MetricsAccessor,
  PipelineContext,
  StepOptions,
  StepResult,
} from "./declare/pipeline-context.ts";
export type { Projection, ProjectionOptions } from "./declare/projection.ts";
export type { ProjectionContext, ProjectionRun } from "./declare/projection-declaration.ts";
export { createRegistry, type Registry } from "./declare/registry.ts";
export type { RunOptions } from "./declare/run-options.ts";
export type { ScheduleFire, ScheduleOptions } from "./declare/schedule.ts";
export type { IndexOptions, TableHandle, TableOptions } from "./declare/table.ts";
export type { TenantOf, TenantTable } from "./declare/tenant-table.ts";
export type { FeatureOptions, TableUse } from "./declare/uses.ts";
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
  type MessageDetails,
  NotFoundError,
  PipelineError,
  ValidationError,
} from "./errors/errors.ts";
export { PermanentError } from "./errors/permanent-error.ts";
export { UnknownOutcomeError } from "./errors/unknown-outcome-error.ts";
export type { Cause } from "./events/cause.ts";
export type { SharedEvent } from "./events/envelope.ts";
export type { EventRange, KeptEvent } from "./events/kept-event.ts";
export type { MessageProof } from "./events/proof.ts";
export type { ReplyCookie } from "./http/cookies.ts";
export type { CorsOptions } from "./http/cors.ts";
export type { Limits } from "./http/limits.ts";
export type { BodyKind } from "./http/message.ts";
export { type Reply, type ReplyOptions, reply } from "./http/reply.ts";
export { type AccessRule, access } from "./identity/access.ts";
export type { AuthOptions, ClaimNames } from "./identity/auth-options.ts";
export type { AuthenticatedUser, TenantUser, User } from "./identity/user.ts";
export type { LogOptions, RequestLines } from "./log/log-options.ts";
export type { Logger, LogLevel } from "./log/logger.ts";
export type { PowertoolsLogger } from "./log/powertools-logger.ts";
export type { OnceBy, RequiredKey } from "./once/once-by.ts";
export type { IfUnknown } from "./once/step.ts";
export type { Environment } from "./process/environment.ts";
export { buildServer, type Server } from "./server/server.ts";
