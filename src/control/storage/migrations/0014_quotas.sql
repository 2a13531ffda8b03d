-- The limits of an organization in a region, for each class of sandboxes. Without a row, only the region limits it,
-- unless the region enforces quotas. A null means no limit.
create table region_quotas (
  organization_id text not null references organizations on delete cascade,
  region_id text not null references regions on delete cascade,
  sandbox_class text not null,
  -- Memory and disk in GiB.
  total_cpu_quota integer,
  total_memory_quota integer,
  total_disk_quota integer,
  total_gpu_quota integer,
  -- Limits per sandbox, which replace those of the organization.
  max_cpu_per_sandbox integer,
  max_memory_per_sandbox integer,
  max_disk_per_sandbox integer,
  max_disk_per_non_ephemeral_sandbox integer,
  max_cpu_per_gpu integer,
  max_memory_per_gpu integer,
  max_disk_per_gpu integer,
  -- Lifespan in minutes.
  max_sandbox_lifespan integer,
  allowed_gpu_types text[],
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (organization_id, region_id, sandbox_class)
);
create index region_quotas_of_region on region_quotas (region_id);

-- For the sweep, which looks for suspended organizations every few seconds.
create index organizations_suspended on organizations (id) where suspended;
