-- Sandboxes that are started before a caller asks for one.
create table warm_pools (
  id text primary key,
  -- Null: one of the server's own pools, whose sandboxes any organization can claim.
  organization_id text references organizations on delete cascade,
  snapshot_id text not null references snapshots on delete cascade,
  region_id text not null references regions on delete cascade,
  -- Number of sandboxes that should be ready. The server's own pools use `demand` instead.
  size integer not null check (size >= 0),
  -- Number of creates that the pool could have served, as of `demand_at`. The weight of a create halves every few
  -- minutes.
  demand double precision not null default 0,
  demand_at timestamptz(3) not null,
  -- Why the pool could not be filled, and the earliest time for the next attempt.
  error_reason text,
  not_before timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  unique nulls not distinct (organization_id, snapshot_id, region_id)
);
create index sandboxes_of_warm_pool on sandboxes (warm_pool_id, state) where warm_pool_id is not null;
