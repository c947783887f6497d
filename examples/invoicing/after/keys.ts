// With `apiKeys`: a client sends its key itself, and the routes under /api-keys manage the keys.
import type { AuthOptions } from "keelson";

export const authOf = (secret: string): AuthOptions => ({ secret, apiKeys: true });
