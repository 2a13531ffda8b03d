-- What an organization may have of a region, for each class of sandboxes. Without a row nothing but the region itself limits
-- it, unless that enforces quotas. A null: not limited here.
create table region_quotas (
  organization_id text not null references organizations on delete cascade,
  region_id text not null references regions on delete cascade,
  sandbox_class text not null,
  -- GiB where it is memory or disk.
  total_cpu_quota integer,
  total_memory_quota integer,
  total_disk_quota integer,
  total_gpu_quota integer,
  -- Each in place of what the organization says of one sandbox.
  max_cpu_per_sandbox integer,
  max_memory_per_sandbox integer,
  max_disk_per_sandbox integer,
  max_disk_per_non_ephemeral_sandbox integer,
  max_cpu_per_gpu integer,
  max_memory_per_gpu integer,
  max_disk_per_gpu integer,
  -- Minutes.
  max_sandbox_lifespan integer,
  allowed_gpu_types text[],
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (organization_id, region_id, sandbox_class)
);
create index region_quotas_of_region on region_quotas (region_id);

-- Looked for every few seconds.
create index organizations_suspended on organizations (id) where suspended;
