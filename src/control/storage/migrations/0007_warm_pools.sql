-- Sandboxes that are started ahead of their callers.
create table warm_pools (
  id text primary key,
  -- Null: kept by the server itself, for whoever comes.
  organization_id text references organizations on delete cascade,
  snapshot_id text not null references snapshots on delete cascade,
  region_id text not null references regions on delete cascade,
  -- How many should be ready. The server's own go by `demand` instead.
  size integer not null check (size >= 0),
  -- Creates that could have been served, each counting half as much with every few minutes; reckoned at `demand_at`.
  demand double precision not null default 0,
  demand_at timestamptz(3) not null,
  -- Why it could not be filled, and not before when that is tried again.
  error_reason text,
  not_before timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  unique nulls not distinct (organization_id, snapshot_id, region_id)
);
create index sandboxes_of_warm_pool on sandboxes (warm_pool_id, state) where warm_pool_id is not null;
