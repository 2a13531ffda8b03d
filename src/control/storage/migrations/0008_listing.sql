-- Listings of many sandboxes. Each sort has an index with the columns of every filter except labels. The slowest query
-- therefore reads one narrow index of the caller's organization, and not the table.

-- A signature of 64 bits with a bit for each label. A sandbox without a requested bit cannot have the label, so most
-- rows need not be read.
create function label_signature(labels jsonb) returns bigint language sql immutable parallel safe
  return (
    select coalesce(bit_or(1::bigint << (hashtextextended(key || '=' || value, 0) & 63)::integer), 0)
    from jsonb_each_text(labels)
  );

alter table sandboxes add column label_signature bigint not null generated always as (label_signature(labels)) stored;

drop index sandboxes_by_activity;
drop index sandboxes_by_creation;
drop index sandboxes_sorted_by_name;

create index sandboxes_by_activity on sandboxes (organization_id, last_activity_at, id)
  include (state, desired_state, name, snapshot, region_id, sandbox_class, public, recoverable, warm_pool_id, cpu,
    memory_gib, disk_gib, created_at, state_changed_at, updated_at, auto_destroy_at, label_signature)
  where state <> 'destroyed';
create index sandboxes_by_creation on sandboxes (organization_id, created_at, id)
  include (state, desired_state, name, snapshot, region_id, sandbox_class, public, recoverable, warm_pool_id, cpu,
    memory_gib, disk_gib, last_activity_at, state_changed_at, updated_at, auto_destroy_at, label_signature)
  where state <> 'destroyed';
create index sandboxes_by_name on sandboxes (organization_id, name, id)
  include (state, desired_state, snapshot, region_id, sandbox_class, public, recoverable, warm_pool_id, cpu,
    memory_gib, disk_gib, created_at, last_activity_at, state_changed_at, updated_at, auto_destroy_at, label_signature)
  where state <> 'destroyed';
create index sandboxes_by_cpu on sandboxes (organization_id, cpu, id)
  include (state, desired_state, name, snapshot, region_id, sandbox_class, public, recoverable, warm_pool_id,
    memory_gib, disk_gib, created_at, last_activity_at, state_changed_at, updated_at, auto_destroy_at, label_signature)
  where state <> 'destroyed';
create index sandboxes_by_memory on sandboxes (organization_id, memory_gib, id)
  include (state, desired_state, name, snapshot, region_id, sandbox_class, public, recoverable, warm_pool_id, cpu,
    disk_gib, created_at, last_activity_at, state_changed_at, updated_at, auto_destroy_at, label_signature)
  where state <> 'destroyed';
create index sandboxes_by_disk on sandboxes (organization_id, disk_gib, id)
  include (state, desired_state, name, snapshot, region_id, sandbox_class, public, recoverable, warm_pool_id, cpu,
    memory_gib, created_at, last_activity_at, state_changed_at, updated_at, auto_destroy_at, label_signature)
  where state <> 'destroyed';

-- Stopped sandboxes were last used long ago, so a listing by activity shows them after all started sandboxes.
create index sandboxes_by_state on sandboxes (organization_id, state, last_activity_at, id)
  include (desired_state, name, snapshot, region_id, sandbox_class, public, recoverable, warm_pool_id, cpu,
    memory_gib, disk_gib, created_at, state_changed_at, updated_at, auto_destroy_at, label_signature)
  where state <> 'destroyed';

-- For filters that match few sandboxes of an organization.
create index sandboxes_by_change on sandboxes (organization_id, state_changed_at) where state <> 'destroyed';
create index sandboxes_by_snapshot on sandboxes (organization_id, snapshot) where state <> 'destroyed';
create index sandboxes_by_auto_destroy on sandboxes (organization_id, auto_destroy_at)
  where state <> 'destroyed' and auto_destroy_at is not null;

-- An index-only scan skips the table only for pages that were vacuumed after their last change.
alter table sandboxes set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);

-- For the sum of the sizes of a runner's sandboxes, which every create and start computes.
drop index sandboxes_of_runner;
create index sandboxes_of_runner on sandboxes (runner_id, state) include (id, cpu, memory_gib, disk_gib);

-- For assignments that are repeated every few seconds. A state that is under way always has a time at which it counts
-- as stuck.
create index sandboxes_owed on sandboxes (runner_id, state_changed_at)
  where stuck_at is not null or (state = 'destroyed' and gone_at is null)
    or (state = 'error' and desired_state = 'destroyed');
