-- Volumes: directories that several sandboxes mount. Their states are in src/control/volumes/lifecycle.ts.
create table volumes (
  id text primary key,
  -- No foreign key: a volume outlives its organization until its runner has removed it.
  organization_id text not null,
  name text not null,
  state text not null check (state in ('ready', 'error', 'pending_delete', 'deleted')),
  error_reason text,
  size_gib integer not null check (size_gib > 0),
  -- Driver, region and runner are null until a sandbox mounts the volume for the first time. With the driver
  -- `directory` the runner stays null, because every runner of the region reaches the volume.
  driver text check (driver in ('disk', 'directory')),
  region_id text,
  runner_id text,
  -- True after a sandbox that mounts the volume has run: a runner without the volume has then lost it.
  is_made boolean not null default false,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  last_used_at timestamptz(3)
);
-- The name of a volume is free as soon as its deletion is requested.
create unique index volumes_name on volumes (organization_id, name) where state in ('ready', 'error');
create index volumes_organization on volumes (organization_id, created_at);
create index volumes_region on volumes (region_id);
create index volumes_runner on volumes (runner_id) where state <> 'deleted';
create index volumes_ended on volumes (updated_at) where state in ('pending_delete', 'deleted');

-- The driver of new volumes on the runner. Null: the runner cannot mount volumes.
alter table runners add column volumes text check (volumes in ('disk', 'directory'));

alter table sandboxes add column volumes jsonb not null default '[]';
create index sandboxes_with_volumes on sandboxes (organization_id) where volumes <> '[]' and gone_at is null;

-- The mount paths are emptied when the sandbox is gone.
create or replace function shed_when_gone() returns trigger language plpgsql as $$
begin
  update sandboxes set env = '{}', unset_env = '{}', labels = '{}', entrypoint = null, build = null, volumes = '[]'
  where id = new.id and (env <> '{}' or unset_env <> '{}' or labels <> '{}' or entrypoint is not null
    or build is not null or volumes <> '[]');
  return null;
end $$;

-- The first start of a sandbox proves that its volumes were made. Rows are locked in the order of ids, to avoid
-- deadlocks.
create function note_volumes_made() returns trigger language plpgsql as $$
begin
  perform from volumes
  where not is_made and id in (select mount ->> 'volumeId' from jsonb_array_elements(new.volumes) mount)
  order by id for no key update;
  update volumes set is_made = true
  where not is_made and id in (select mount ->> 'volumeId' from jsonb_array_elements(new.volumes) mount);
  return null;
end $$;
create trigger note_volumes_made after update of first_started_at on sandboxes
  for each row when (old.first_started_at is null and new.first_started_at is not null and new.volumes <> '[]')
  execute function note_volumes_made();

create function tell_webhooks_of_volume() returns trigger language plpgsql as $$
begin
  if not exists (select from webhook_applications where organization_id = new.organization_id and is_listening) then
    return null;
  end if;
  insert into webhook_messages (organization_id, event, subject_id, name, old_state, state, at, reason)
  values (new.organization_id, case tg_op when 'INSERT' then 'volume.created' else 'volume.state.updated' end,
    new.id, new.name, case when tg_op = 'UPDATE' then old.state end, new.state, new.updated_at, new.error_reason);
  perform pg_notify('webhook_messages', '');
  return null;
end $$;
create trigger webhooks_of_volume after insert on volumes for each row execute function tell_webhooks_of_volume();
create trigger webhooks_of_volume_state after update of state on volumes
  for each row when (old.state <> new.state) execute function tell_webhooks_of_volume();
