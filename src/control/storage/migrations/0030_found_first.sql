-- A page from the middle of a sort is found through the most selective filter, and its matches are then sorted. Each
-- kind of filter therefore has an index with the columns of all other filters; otherwise each sandbox would be read
-- from the table.

-- For filters by the time of the last change, whose matches lie together at one end of most sorts.
drop index sandboxes_by_change;
create index sandboxes_by_change on sandboxes (organization_id, state_changed_at, id)
  include (state, desired_state, name, snapshot, region_id, sandbox_class, public, recoverable, warm_pool_id, cpu,
    memory_gib, disk_gib, created_at, last_activity_at, auto_destroy_at, label_signature)
  where state <> 'destroyed';

-- These columns have few different values, so an index scan can skip the other values, for each column and each
-- combination.
drop index sandboxes_by_class, sandboxes_by_region, sandboxes_by_snapshot;
create index sandboxes_by_kind on sandboxes (organization_id, public, sandbox_class, region_id, state, snapshot, id)
  include (desired_state, name, recoverable, warm_pool_id, cpu, memory_gib, disk_gib, created_at, last_activity_at,
    state_changed_at, auto_destroy_at, label_signature)
  where state <> 'destroyed';

-- The planner estimates from the first column of an index how scattered its rows are. Rows of one name are scattered,
-- rows of one organization are not. With the organization first, the planner would read half of the table for a name.
drop index sandboxes_by_auto_destroy, sandboxes_by_name_prefix;
create index sandboxes_by_auto_destroy on sandboxes (auto_destroy_at, organization_id)
  where state <> 'destroyed' and auto_destroy_at is not null;
create index sandboxes_by_name_prefix on sandboxes (lower(name) text_pattern_ops, organization_id) where state <> 'destroyed';

-- The collation orders by code points, so the primary key also finds prefixes of ids.
drop index sandboxes_by_id_prefix;
