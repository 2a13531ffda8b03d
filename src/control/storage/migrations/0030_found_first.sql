-- A page that does not lie at the beginning of its sort is found by the filter that leaves the fewest, and then sorted. So there is
-- an index for each kind of filter that holds all that the others ask about: without, each sandbox is read from the table.

-- What changed within a time, or not for one, lies together at one end of most sorts.
drop index sandboxes_by_change;
create index sandboxes_by_change on sandboxes (organization_id, state_changed_at, id)
  include (state, desired_state, name, snapshot, region_id, sandbox_class, public, recoverable, warm_pool_id, cpu,
    memory_gib, disk_gib, created_at, last_activity_at, auto_destroy_at, label_signature)
  where state <> 'destroyed';

-- Of few values each, so that any of them, and any of them together, are found by skipping the others.
drop index sandboxes_by_class, sandboxes_by_region, sandboxes_by_snapshot;
create index sandboxes_by_kind on sandboxes (organization_id, public, sandbox_class, region_id, state, snapshot, id)
  include (desired_state, name, recoverable, warm_pool_id, cpu, memory_gib, disk_gib, created_at, last_activity_at,
    state_changed_at, auto_destroy_at, label_signature)
  where state <> 'destroyed';

-- The planner judges by the first column how scattered the rows are to which an index leads. Those of one organization are not,
-- those of one name are: with the organization first it would read half of the table for them.
drop index sandboxes_by_auto_destroy, sandboxes_by_name_prefix;
create index sandboxes_by_auto_destroy on sandboxes (auto_destroy_at, organization_id)
  where state <> 'destroyed' and auto_destroy_at is not null;
create index sandboxes_by_name_prefix on sandboxes (lower(name) text_pattern_ops, organization_id) where state <> 'destroyed';

-- In our collation, which is by code points, the primary key finds beginnings of ids as well.
drop index sandboxes_by_id_prefix;
