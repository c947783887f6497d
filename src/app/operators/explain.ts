import type { ConfigKeyHandle } from "../../parts/config/declare/key.ts";
import { type ConfigExplanation, explainKey } from "../../parts/config/operate/explain-config.ts";
import { assertCall } from "../../parts/config/operate/operator-call.ts";
import type { OperatorContext } from "../../parts/config/operate/operator-session.ts";
import { authorizeRead, type ConfigTarget, ownerAt } from "../../parts/config/operate/target.ts";
import { limitUses } from "./limit-uses.ts";

/**
 * Explains where a key's value comes from: every level with its value, writer, time and reason, and
 * which one wins. Names the limits that read the key, with the tenant's use. Reads consistently and
 * bypasses the cache.
 * @throws NotFoundError if the caller may not read the key; AccessDeniedError for another tenant or
 * user without `access.systemAdmin`; ValidationError for an invalid target or an unknown option;
 * FrameworkError `config_unavailable` if the store fails.
 * @example
 * const { source, levels } = await explainConfig(ctx, config.maxUploadSizeMb);
 */
export async function explainConfig(
  ctx: OperatorContext,
  handle: ConfigKeyHandle<unknown>,
  target: ConfigTarget = {},
): Promise<ConfigExplanation> {
  assertCall("explainConfig", handle, target);
  const explanation = await explainKey(ctx, handle, target);
  const owner = ownerAt(authorizeRead(ctx.user, handle, target));
  const limits = await limitUses(ctx, handle.id, owner, explanation.value);
  return limits.length === 0 ? explanation : { ...explanation, limits };
}
