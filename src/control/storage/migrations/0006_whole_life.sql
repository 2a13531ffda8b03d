-- Columns for pause, resize, archive, fork, snapshot and eviction.

alter table runners
  -- What the runner can preserve at a pause, and copy at a fork. Null: it cannot pause or fork.
  add column pause text,
  add column fork text;

alter table sandboxes
  -- Null: the sandbox has never run, so a runner may make a disk for it.
  add column first_started_at timestamptz(3),
  add column spot boolean not null default false,
  add column spot_evicted_at timestamptz(3),

  -- What the present pause, or the pause under way, preserves of the running processes.
  add column pause_kind text,
  -- The size to restore if the resize under way is refused: cpu, memoryGiB, diskGiB.
  add column resize_from jsonb,
  -- The image that the snapshot under way makes of the disk.
  add column snapshot_image text,
  -- Progress of a slow operation: step, percent.
  add column progress jsonb,

  add column archive_id text,
  add column archive_sha256 text,
  add column archive_bytes bigint,
  add column archive_stored_bytes bigint,
  -- Since when the disk is only in the archive.
  add column archived_at timestamptz(3),
  -- After a refused archive: no timer tries to archive the sandbox again before this time.
  add column archive_not_before timestamptz(3),

  -- The sandbox that this one was forked from, and all ancestors, the root first. They may be gone.
  add column parent_id text,
  add column ancestor_ids text[] not null default '{}',
  add column fork_kind text;

update sandboxes set first_started_at = created_at
where state not in ('creating', 'error')
  or exists (select from sandbox_events where sandbox_id = sandboxes.id and to_state = 'started');

-- A generated column cannot be changed, so it is dropped and added again.
alter table sandboxes drop column due_at;
alter table sandboxes add column due_at timestamptz(3) generated always as (
  case when state = 'destroyed' then
    case when gone_at is not null then ((gone_at at time zone 'UTC') + interval '24 hours') at time zone 'UTC' end
  else least(
    stuck_at,
    case when desired_state <> 'destroyed' then auto_destroy_at end,
    case when state = 'started' and auto_stop_interval > 0 then
      ((last_activity_at at time zone 'UTC') + auto_stop_interval * interval '1 minute') at time zone 'UTC' end,
    case when state = 'started' and auto_pause_interval > 0 then
      ((last_activity_at at time zone 'UTC') + auto_pause_interval * interval '1 minute') at time zone 'UTC' end,
    case when state = 'stopped' and auto_archive_interval > 0 then
      greatest(((stopped_at at time zone 'UTC') + auto_archive_interval * interval '1 minute') at time zone 'UTC',
        archive_not_before) end,
    case when state in ('stopped', 'archived') and auto_delete_interval >= 0 then
      ((stopped_at at time zone 'UTC') + auto_delete_interval * interval '1 minute') at time zone 'UTC' end
  ) end
) stored;
create index sandboxes_due on sandboxes (due_at) where due_at is not null;
create index sandboxes_by_parent on sandboxes (parent_id, created_at) where parent_id is not null;
