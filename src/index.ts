export { defineFeature, type Feature } from "./app/features/feature.ts";
export type { ConfigHandles, FeatureBuilder } from "./app/features/feature-builder.ts";
export type { FeatureOptions, TableUse } from "./app/features/uses.ts";
export type { Concurrency } from "./app/handlers/concurrency.ts";
export type {
  DeliveryAccessor,
  EffectOptions,
  EnqueuedJob,
  EnqueueOptions,
  SendOptions,
  StepOptions,
  StepResult,
} from "./app/handlers/effect-options.ts";
export type { EventOptions } from "./app/handlers/event-options.ts";
export type {
  Answer,
  Awaitable,
  QueryOptions,
  RateLimits,
  WriteOptions,
} from "./app/handlers/handler.ts";
export type { HookOptions } from "./app/handlers/hooks.ts";
export type {
  ChannelOptions,
  ConsumerOptions,
  EventOf,
  EventSchema,
  JobOptions,
  ProjectionContext,
  ProjectionRun,
} from "./app/handlers/message-handlers.ts";
export type {
  AfterHookContext,
  HookContext,
  PipelineContext,
  QueryContext,
  ReadContext,
} from "./app/handlers/pipeline-context.ts";
export type { Quota, QuotaContext, QuotaOptions, QuotaUsage } from "./app/handlers/quota.ts";
export type { RateLimitAccessor, RateLimitVerdict } from "./app/handlers/rate-limit.ts";
export type { ReceiveOptions } from "./app/handlers/receiver.ts";
export type {
  IndexOptions,
  PageOptions,
  TableHandle,
  TableOptions,
  TablePage,
  TenantOf,
} from "./app/handlers/table.ts";
export type { TenantTable } from "./app/handlers/tenant-table.ts";
export type { IncomingWebhookOptions } from "./app/handlers/webhook.ts";
export type { Apply, Projection, ProjectionOptions } from "./app/projections/projection.ts";
export type { Closer, ReadyCheck } from "./app/registry/declared-server.ts";
export type {
  DeliveryOptions,
  RunOptions,
  ServerOptions,
  WebhookOptions,
} from "./app/registry/options.ts";
export { createRegistry, type Registry } from "./app/registry/registry.ts";
export type { ScheduleFire, ScheduleOptions } from "./app/schedules/schedule.ts";
export type { RunResult, Server } from "./app/server/server.ts";
export { BootError, type BootProblem } from "./base/errors/boot.ts";
export type { BootRule } from "./base/errors/boot-rule.ts";
export { type ErrorCode, errorCodes } from "./base/errors/error-codes.ts";
export {
  AccessDeniedError,
  CommitConditionError,
  ConflictError,
  type ErrorDetails,
  type FieldError,
  FrameworkError,
  isTypedError,
  type MessageDetails,
  NotFoundError,
  PermanentError,
  PipelineError,
  UnknownOutcomeError,
  ValidationError,
} from "./base/errors/errors.ts";
export type { AuthenticatedUser, TenantUser, User } from "./base/identity/access.ts";
export { type AccessRule, access } from "./base/identity/access.ts";
export type {
  AuthOptions,
  CallerRequest,
  ClaimNames,
  ResolveCaller,
  ResolvedCaller,
} from "./base/identity/auth-options.ts";
export type { LogOptions, RequestLines } from "./base/log/log-options.ts";
export type { Logger, LogLevel } from "./base/log/logger.ts";
export type { PowertoolsLogger } from "./base/log/powertools-logger.ts";
export type { MetricOptions } from "./base/metrics/declared-metric.ts";
export type { MetricsAccessor, MetricsOptions } from "./base/metrics/metrics.ts";
export type { Environment } from "./base/process/environment.ts";
export { type AmbientContext, currentContext } from "./base/request/ambient.ts";
export type { RequestView } from "./base/request/request-view.ts";
export type { IncomingTrace, Trace, TraceHeaders } from "./base/request/trace.ts";
export type { CommitItem, Database } from "./base/types/database.ts";
export type {
  AnyChannel,
  AnyEvent,
  AnyJob,
  AnyQuery,
  AnyWrite,
  ChannelHandle,
  EventHandle,
  Handle,
  JobHandle,
  LabelsOf,
  MessageOf,
  MetricHandle,
  QueryHandle,
  QueryOf,
  RateLimitHandle,
  ReceivedOf,
  WriteHandle,
  WriteOf,
} from "./base/types/handles.ts";
// A star export, because `declare module "keelson"` can only augment names that a star exports.
export * from "./base/types/names.ts";
export type { AnySchema, TypedSchema } from "./base/types/schema.ts";
export { buildServer } from "./build-server.ts";
export type { CacheOptions } from "./parts/config/cache/cache-options.ts";
export { validateAppOverrides } from "./parts/config/declare/app-overrides.ts";
export {
  createSystemConfig,
  createTenantConfig,
  createUserConfig,
} from "./parts/config/declare/declaration.ts";
export type {
  Bounds,
  ComputedContext,
  ConfigKeyDefinition,
  ConfigKeyHandle,
  ConfigScope,
  ConfigType,
  KeyDeclaration,
} from "./parts/config/declare/key.ts";
export {
  validateConfigKeyAllowPerRequest,
  validateConfigKeyBounds,
  validateConfigKeyComputed,
} from "./parts/config/declare/validators.ts";
export type { ConfigSource } from "./parts/config/read/cascade.ts";
export {
  type ClampData,
  type ConfigOptions,
  type ParameterOptions,
  resolveConfigOrParam,
} from "./parts/config/read/request-parameter.ts";
export { type ConfigResolver, createConfigResolver } from "./parts/config/read/resolver.ts";
export type { ReplyCookie } from "./parts/http/cookies.ts";
export type { CorsOptions } from "./parts/http/cors-options.ts";
export type { BodyLimits, Limits } from "./parts/http/limits.ts";
export type { BodyKind } from "./parts/http/message.ts";
export { type Reply, type ReplyOptions, reply } from "./parts/http/reply.ts";
export {
  jsonLines,
  type SseItem,
  type SseOptions,
  type StreamedOutput,
  sse,
} from "./parts/http/streamed-output.ts";
export {
  type QuotaDetails,
  QuotaExceededError,
  type QuotaStatus,
} from "./parts/limits/quota-error.ts";
export type { QuotaWindow } from "./parts/limits/quota-period.ts";
export type { RateLimit } from "./parts/limits/rate-limit.ts";
export type { RateWindow } from "./parts/limits/rate-window.ts";
export type { Cause, SharedEvent } from "./parts/messages/envelope.ts";
export type { EventRange, KeptEvent } from "./parts/messages/kept-events.ts";
export type { MessageProof } from "./parts/messages/proof.ts";
export type { ReceivedEvent } from "./parts/messages/received-event.ts";
export type { OnceOptions } from "./parts/once/once-by.ts";
export type { IfUnknown } from "./parts/once/step.ts";
export type {
  NewTenant,
  Tenant,
  TenantListOptions,
  TenantPage,
  Tenants,
} from "./parts/tenant-registry/tenant.ts";
