-- Runners, sandboxes and the events of sandboxes.

create table runners (
  id text primary key,
  region_id text not null references regions,
  -- SHA-256 of the runner's key, in lower-case hex.
  key_hash text not null unique,
  state text not null default 'initializing',
  -- Address at which the gate reaches the runner's toolboxes.
  address text,
  images text[] not null default '{}',
  cpu double precision not null default 0,
  memory_gib double precision not null default 0,
  disk_gib double precision not null default 0,
  runtime text not null default '',
  runtime_version text not null default '',
  hard_disk_limit boolean not null default false,
  version text not null default '',
  last_heartbeat_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);

create table sandboxes (
  id text primary key,
  organization_id text not null,
  name text not null,
  region_id text not null references regions,
  sandbox_class text not null,
  snapshot_id text not null,
  snapshot text not null,
  image text not null,
  os_user text not null,
  env jsonb not null,
  labels jsonb not null,
  public boolean not null,
  network_block_all boolean not null,
  network_allow_list text[],
  cpu integer not null,
  memory_gib integer not null,
  disk_gib integer not null,

  state text not null,
  desired_state text not null,
  -- Grows with every write of the state: the value that compare-and-set compares.
  version integer not null,
  -- Grows with every change of what the runner should do.
  generation integer not null,
  stop_signal text not null default 'SIGTERM',
  error_reason text,
  recoverable boolean,
  runner_id text references runners (id),
  warm_pool_id text,

  auto_stop_interval integer not null,
  auto_pause_interval integer not null,
  auto_archive_interval integer not null,
  auto_delete_interval integer not null,
  auto_destroy_at timestamptz(3),
  last_activity_at timestamptz(3) not null,
  -- When the state was last written.
  state_changed_at timestamptz(3) not null,
  stopped_at timestamptz(3),
  -- When the present state counts as stuck.
  stuck_at timestamptz(3),
  destroyed_at timestamptz(3),
  -- When the runner reported that nothing of the sandbox is left.
  gone_at timestamptz(3),

  preview_token text not null,
  signing_key text not null,
  created_by text not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,

  -- The next time at which a timer is due; timers.ts says which one. Computed in UTC, so that the expression is
  -- immutable.
  due_at timestamptz(3) generated always as (
    case when state = 'destroyed' then
      case when gone_at is not null then ((gone_at at time zone 'UTC') + interval '24 hours') at time zone 'UTC' end
    else least(
      stuck_at,
      case when desired_state <> 'destroyed' then auto_destroy_at end,
      case when state = 'started' and auto_stop_interval > 0 then
        ((last_activity_at at time zone 'UTC') + auto_stop_interval * interval '1 minute') at time zone 'UTC' end,
      case when state = 'stopped' and auto_delete_interval >= 0 then
        ((stopped_at at time zone 'UTC') + auto_delete_interval * interval '1 minute') at time zone 'UTC' end
    ) end
  ) stored
);

-- The name of a sandbox is free as soon as the sandbox is to be destroyed.
create unique index sandboxes_live_name on sandboxes (organization_id, name) where desired_state <> 'destroyed';
create index sandboxes_due on sandboxes (due_at) where due_at is not null;
create index sandboxes_of_runner on sandboxes (runner_id, state);
create index sandboxes_by_activity on sandboxes (organization_id, last_activity_at, id) where state <> 'destroyed';
create index sandboxes_by_creation on sandboxes (organization_id, created_at, id) where state <> 'destroyed';
create index sandboxes_sorted_by_name on sandboxes (organization_id, name, id) where state <> 'destroyed';
create index sandboxes_by_name_prefix on sandboxes (organization_id, lower(name) text_pattern_ops) where state <> 'destroyed';
create index sandboxes_by_id_prefix on sandboxes (id text_pattern_ops);
create index sandboxes_by_label on sandboxes using gin (labels jsonb_path_ops);
create index sandboxes_by_preview_token on sandboxes (preview_token);

-- The timeline: what happened to a sandbox, when, why, and by whom. Written in the same statement as the state.
create table sandbox_events (
  id bigint generated always as identity primary key,
  sandbox_id text not null,
  organization_id text not null,
  from_state text,
  to_state text not null,
  at timestamptz(3) not null,
  -- Kind of actor (user, runner or timer), and its id or name.
  by_kind text not null,
  by_id text not null,
  reason text,
  cause jsonb
);
create index sandbox_events_of_sandbox on sandbox_events (sandbox_id, id);
create index sandbox_events_by_time on sandbox_events (at);

-- The sandbox that a request with an Idempotency-Key made. Kept for a day.
create table idempotency_keys (
  organization_id text not null,
  key text not null,
  -- SHA-256 of the request that had the key.
  request_hash text not null,
  sandbox_id text not null,
  created_at timestamptz(3) not null,
  primary key (organization_id, key)
);
create index idempotency_keys_by_time on idempotency_keys (created_at);
