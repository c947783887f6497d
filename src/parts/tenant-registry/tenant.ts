/** A registered tenant. */
export interface Tenant {
  /** As tokens and API keys have it. */
  readonly id: string;
  readonly name?: string;
  /** IANA name. Schedules with `for: "tenants"` are due by its clock. */
  readonly timeZone: string;
  /** In ISO 8601. */
  readonly createdAt: string;
  readonly status: "active" | "suspended";
  /** Time and reason of the suspension. Absent for an active tenant. */
  readonly suspended?: { readonly at: string; readonly reason: string };
}

/** Options of `server.tenants.create`. */
export interface NewTenant {
  /** 1 to 256 characters, as tokens have it. */
  readonly id: string;
  /** 1 to 256 characters. Default: none. */
  readonly name?: string;
  /**
   * IANA name, such as `Europe/Berlin`. It cannot be changed. The registry stores the main name of
   * an alias. Default `UTC`.
   */
  readonly timeZone?: string;
}

/** Options of `server.tenants.list`. */
export interface TenantListOptions {
  /** Tenants per page, from 1 to 1,000. Default 100. */
  readonly limit?: number;
  /** The `cursor` of the page before. Default: the first page. */
  readonly cursor?: string;
}

/** One page of tenants, sorted by time zone and ID. */
export interface TenantPage {
  readonly items: readonly Tenant[];
  /** Absent on the last page. */
  readonly cursor?: string;
}

/** The tenants that a server registers, see `docs/tenant-registry.md`. */
export interface Tenants {
  /**
   * Registers a tenant.
   *
   * @throws ValidationError for wrong options; ConflictError `tenant_exists` for a registered ID.
   */
  create(tenant: NewTenant): Promise<Tenant>;
  /** @throws NotFoundError for an ID that is not registered; ValidationError for a wrong one. */
  get(id: string): Promise<Tenant>;
  /** @throws ValidationError for wrong options. */
  list(options?: TenantListOptions): Promise<TenantPage>;
  /**
   * Suspends a tenant: this process immediately refuses its requests with 403 `tenant_suspended`,
   * others within 5 seconds. A repeat replaces the reason.
   *
   * @param options - `reason`: 1 to 500 characters, which callers do not see.
   * @throws the errors of `get`; ValidationError without a reason; PipelineError 503 if other
   * processes prevent the change five times.
   */
  suspend(id: string, options: { readonly reason: string }): Promise<Tenant>;
  /** Ends a suspension, if there is one. @throws the errors of `suspend`. */
  resume(id: string): Promise<Tenant>;
}

/** Start of the partitions of all rows of the registry. */
export const registryPartition = "tenant-registry";

/** A tenant as its rows have it. Times are in milliseconds since the epoch. */
export interface StoredTenant {
  readonly tenantId: string;
  readonly name?: string | undefined;
  readonly timeZone: string;
  readonly createdMs: number;
  readonly suspendedMs?: number | undefined;
  readonly reason?: string | undefined;
}

/** End of a page: the last tenant that was read. */
export type TenantPlace = Pick<StoredTenant, "tenantId" | "timeZone">;

/** Every read sees all earlier writes, and every method is atomic. */
export interface TenantStore {
  read(tenantId: string): Promise<StoredTenant | undefined>;
  /** Resolves to `false` if the tenant exists. */
  add(tenant: StoredTenant): Promise<boolean>;
  /** Resolves to `false` if the tenant does not exist, or has changed since it was read. */
  change(tenant: StoredTenant, changed: Suspension | undefined): Promise<boolean>;
  /**
   * Removes a suspended tenant. Resolves to `false` if it has been resumed since it was read, even
   * if it is suspended again.
   */
  remove(tenant: StoredTenant): Promise<boolean>;
  /** @param timeZone - reads only its tenants. Default: all. */
  page(
    limit: number,
    after?: TenantPlace,
    timeZone?: string,
  ): Promise<{
    readonly items: readonly StoredTenant[];
    readonly next: TenantPlace | undefined;
  }>;
  /** Time zones that any tenant has ever had, with the creation of their first tenant. */
  timeZones(): Promise<readonly { readonly timeZone: string; readonly sinceMs: number }[]>;
}

export interface Suspension {
  readonly suspendedMs: number;
  readonly reason: string;
}
